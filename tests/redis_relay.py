"""A TCP relay on loopback before a Redis: it delays each answer, or holds all answers back."""

import asyncio


class RedisRelay:
    """An async context manager.

    Attributes:
        delay_seconds: how long each answer of Redis takes from now on.
        is_open: cleared, answers are held back until it is set.
        connections: how many have been accepted so far.
        commands: how many pieces of commands have been passed on so far.
    """

    def __init__(self, redis_port):
        self._redis_port = redis_port
        self.delay_seconds = 0.0
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.connections = self.commands = 0
        self._tasks = set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader, writer):
        self.connections += 1
        redis_reader, redis_writer = await asyncio.open_connection("127.0.0.1", self._redis_port)
        for work in (self._pass(reader, redis_writer), self._pass_late(redis_reader, writer)):
            task = asyncio.get_running_loop().create_task(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass(self, reader, writer):
        try:
            while data := await reader.read(65_536):
                self.commands += 1
                writer.write(data)
        finally:
            writer.close()

    async def _pass_late(self, reader, writer):
        """Pass each piece after its own delay, in order: what waits together is not delayed one after another."""
        loop = asyncio.get_running_loop()
        late = asyncio.Queue()

        async def pass_due():
            while (piece := await late.get()) is not None:
                due, data = piece
                await asyncio.sleep(max(0.0, due - loop.time()))
                await self.is_open.wait()
                writer.write(data)
            writer.close()

        passing = loop.create_task(pass_due())
        self._tasks.add(passing)
        passing.add_done_callback(self._tasks.discard)
        while data := await reader.read(65_536):
            late.put_nowait((loop.time() + self.delay_seconds, data))
        late.put_nowait(None)
