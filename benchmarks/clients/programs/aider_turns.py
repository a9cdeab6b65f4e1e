"""A session of aider in which the user shows one file a turn: python aider_turns.py MODEL LAST_MESSAGE."""

import sys
from pathlib import Path

from aider.coders import Coder
from aider.io import InputOutput
from aider.models import Model

name, last_message = sys.argv[1:]
model = Model(name)
# Else it summarises all but the last 1,024 tokens, and no session of its grows.
model.max_chat_history_tokens = 1_000_000
coder = Coder.create(main_model=model, edit_format="ask", io=InputOutput(yes=True, pretty=False), use_git=False)
for path in sorted(Path().glob("file_*.txt")):
    coder.run(f"This is {path.name}:\n\n{path.read_text(encoding='utf-8')}\nWhat does it hold?")
print(coder.run(last_message))
