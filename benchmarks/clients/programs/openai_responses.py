"""A session on the Responses route with the OpenAI SDK, streamed: python openai_responses.py MODEL PROMPT."""

import json
import sys

from openai import OpenAI
from reading import DESCRIPTION, NAME, SCHEMA, read_file

model, prompt = sys.argv[1:]
client = OpenAI()
tools = [{"type": "function", "name": NAME, "description": DESCRIPTION, "parameters": SCHEMA, "strict": True}]
items = [{"role": "user", "content": prompt}]
while True:
    with client.responses.stream(
        model=model, input=items, tools=tools, instructions="You are a careful reviewer.", store=False
    ) as stream:
        answer = stream.get_final_response()
    items += [item.model_dump(exclude_none=True) for item in answer.output]
    calls = [item for item in answer.output if item.type == "function_call"]
    if not calls:
        break
    for call in calls:
        text = read_file(**json.loads(call.arguments))
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": text})
print(answer.output_text)
