"""A session of a pydantic-ai agent, on chat completions: python pydantic_ai_agent.py MODEL PROMPT."""

import sys

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from reading import read_file

model, prompt = sys.argv[1:]
agent = Agent(OpenAIChatModel(model), instructions="You are a careful reviewer.", tools=[read_file])
print(agent.run_sync(prompt).output)
