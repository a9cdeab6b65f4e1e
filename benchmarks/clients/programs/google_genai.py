"""A session with the Google Gen AI SDK: python google_genai.py MODEL PROMPT."""

import sys

from google import genai
from google.genai import types
from reading import DESCRIPTION, NAME, SCHEMA, read_file

model, prompt = sys.argv[1:]
# LiteLLM serves this version alone; the SDK's own default is v1.
client = genai.Client(http_options=types.HttpOptions(api_version="v1beta"))
schema = {key: value for key, value in SCHEMA.items() if key != "additionalProperties"}
tool = types.FunctionDeclaration(name=NAME, description=DESCRIPTION, parameters=schema)
config = types.GenerateContentConfig(
    tools=[types.Tool(function_declarations=[tool])], system_instruction="You are a careful reviewer."
)
chat = client.chats.create(model=model, config=config)
answer = chat.send_message(prompt)
while answer.function_calls:
    answer = chat.send_message(
        [
            types.Part.from_function_response(name=call.name, response={"output": read_file(**call.args)})
            for call in answer.function_calls
        ]
    )
print(answer.text)
