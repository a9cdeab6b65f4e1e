"""A session with the Anthropic SDK, streamed: python anthropic_messages.py MODEL PROMPT."""

import sys

from anthropic import Anthropic
from reading import DESCRIPTION, NAME, SCHEMA, read_file

model, prompt = sys.argv[1:]
client = Anthropic()
tools = [{"name": NAME, "description": DESCRIPTION, "input_schema": SCHEMA}]
messages = [{"role": "user", "content": prompt}]
while True:
    with client.messages.stream(
        model=model, messages=messages, tools=tools, system="You are a careful reviewer.", max_tokens=4096
    ) as stream:
        answer = stream.get_final_message()
    messages.append({"role": "assistant", "content": answer.content})
    calls = [block for block in answer.content if block.type == "tool_use"]
    if not calls:
        break
    results = [{"type": "tool_result", "tool_use_id": c.id, "content": read_file(**c.input)} for c in calls]
    messages.append({"role": "user", "content": results})
print(answer.content[-1].text)
