"""Replay recorded requests one after another in every way: the form in which each would have been sent, and its cost."""

from collections import Counter as Occurrences
from collections.abc import Sequence
from pathlib import Path

from ctx_hooks.cli.configuration import configuration_without_mistakes
from ctx_hooks.cli.files import files_of
from ctx_hooks.cli.replay.reading import ENDINGS, Reading
from ctx_hooks.cli.replay.recorded import LeftOut, Recorded
from ctx_hooks.cli.replay.sessions import Bill, Course, KnownSessions, Session, as_received, as_sent, without_markers
from ctx_hooks.cli.replay.ways import DEFAULT, MOST_FIGURE, OWN, UNTOUCHED, Deployments, Prices, Way, target_of, tried_way
from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.learning.attempts import attempt_at, known_of
from ctx_hooks.learning.stats import RATIOS, DeploymentStats
from ctx_hooks.learning.updates import of_answer
from ctx_hooks.litellm_compat.call import Deployment
from ctx_hooks.request.request import counted_history
from ctx_hooks.request.target import Target, of_deployment
from ctx_hooks.tokens.counter import Counter, vocabulary_of

NOW = 0.0
"""The fixed time of a replay: nothing learned expires during a history."""
IMPOSSIBLE = "requests whose usage is no possible figure"
MALFORMED = "requests whose messages cannot be read"


class Replay:
    """Replays recorded requests, in the order in which they were sent.

    Attributes:
        ways: the policies that are tried.
        bills: the figures without the plugin, then those in each way.
        recorded: the bill in the history, as far as it has one.
        sessions: how many there are.
    """

    def __init__(self, ways: Sequence[Way], deployments: Deployments) -> None:
        self.ways = tuple(ways)
        self.bills = [Bill() for _ in (None, *ways)]
        self.recorded = Bill()
        self.sessions = 0
        self.left_out: Occurrences[str] = Occurrences()
        self.out_of_order = 0
        self._deployments = deployments
        self._prices = Prices()
        self._shown: dict[str, DeploymentStats] = {}
        self._open = KnownSessions()

    def add(self, found: Recorded | LeftOut) -> None:
        """Replay the next request."""
        if isinstance(found, LeftOut):
            self.left_out[found.reason] += 1
            return
        if found.billed is not None and max(found.billed) > MOST_FIGURE:
            self.left_out[IMPOSSIBLE] += 1
            return
        deployment = self._deployments.of(found)
        targets = [target_of(way, deployment, found) for way in self.ways]
        plain = of_deployment(deployment, UNTOUCHED, "replay")
        try:
            self._add_request(found, deployment, plain, targets)
        except (MalformedConversationError, RecursionError):
            self.left_out[MALFORMED] += 1

    def _add_request(self, found: Recorded, deployment: Deployment, plain: Target, targets: Sequence[Target]) -> None:
        shown = self._shown.get(deployment.model, DeploymentStats())
        seen = shown.seen_by(plain.tenant, NOW)
        counter = Counter(vocabulary_of(deployment.model), other_weight=seen.other_weight(deployment.model))
        request = without_markers(found.request)
        received = as_received(request, counter)
        session = self._open.of(found.session, received.prefixes, self._begun)
        self.out_of_order += found.started < session.started
        session.started = max(found.started, session.started)
        ratio = seen.factor(deployment.model)
        if found.billed is not None:
            ratio = found.billed.input_tokens / max(1, received.tokens)
        self._note(found, deployment)
        asked = request.max_output_tokens or 0 if plain.window.holds_output else 0
        is_refused = found.was_refused or received.tokens * ratio > plain.window.tokens - asked
        forms = [(received, is_refused)]
        for to in targets:
            sent = as_sent(request, received, to, known_of(to, shown, NOW), counter)
            # A retry asks for less output, so that only the input has to fit.
            remains = sent.tokens * ratio > to.window.tokens or (found.was_refused and not sent.is_changed)
            forms.append((sent, remains))
        for course, (sent, is_refused) in zip(session.courses, forms, strict=True):
            tokens = course.send(sent, ratio, is_refused=is_refused)
            if tokens is not None:
                output = found.billed.output_tokens if found.billed is not None else 0
                billed = self._prices.billed(deployment, *tokens, output)
                course.bill.answer(billed, self._prices.dollars(deployment, billed))
        if found.billed is not None:
            attempt = attempt_at(request, plain, known_of(plain, shown, NOW), counted_history(request, counter))
            answer = of_answer(shown, attempt, found.billed.input_tokens, NOW)
            # Not its evidence of the window, since `--window` may differ from the window of the history.
            self._shown[deployment.model] = shown.merged({k: o for k, o in answer.items() if k[0] in RATIOS}, NOW)

    def _note(self, found: Recorded, deployment: Deployment) -> None:
        """Add the recorded refusal or bill of a request."""
        if found.was_refused:
            self.recorded.refused += 1
        elif found.billed is not None:
            stated = found.dollars
            dollars = self._prices.dollars(deployment, found.billed) if stated is None else stated
            self.recorded.answer(found.billed, dollars)

    def _begun(self) -> Session:
        self.sessions += 1
        return Session([Course(bill) for bill in self.bills])


def replayed(
    *, histories: Sequence[str], policies: Sequence[str], config: Path | None, model: str, window: int | None
) -> tuple[Reading, Replay]:
    """Return the files read, and their replay; the arguments are the options of the command.

    Raises:
        CommandError: a file is not there, or a policy or the configuration has mistakes.
    """
    proxy = configuration_without_mistakes(config)
    own = [Way(OWN, proxy.policies)] if config else []
    tried = [tried_way(text, proxy.settings.policies) for text in dict.fromkeys(policies)]
    reading = Reading()
    replay = Replay([*own, *tried] or [Way(DEFAULT, proxy.policies)], Deployments(proxy, model, window))
    for path in files_of(histories, *ENDINGS):
        for found in reading.of(path):
            replay.add(found)
    return reading, replay
