"""A session on chat completions with the OpenAI SDK, streamed: python openai_chat.py MODEL PROMPT."""

import json
import sys

from openai import OpenAI
from reading import DESCRIPTION, NAME, SCHEMA, read_file

model, prompt = sys.argv[1:]
client = OpenAI()
tools = [{"type": "function", "function": {"name": NAME, "description": DESCRIPTION, "parameters": SCHEMA}}]
messages = [{"role": "system", "content": "You are a careful reviewer."}, {"role": "user", "content": prompt}]
while True:
    with client.chat.completions.stream(model=model, messages=messages, tools=tools) as stream:
        answer = stream.get_final_completion().choices[0].message
    messages.append(answer.model_dump(exclude_none=True))
    if not answer.tool_calls:
        break
    for call in answer.tool_calls:
        text = read_file(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
print(answer.content)
