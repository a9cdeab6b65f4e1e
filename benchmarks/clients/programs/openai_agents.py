"""A session of the OpenAI Agents SDK, on the Responses route: python openai_agents.py MODEL PROMPT."""

import sys

from agents import Agent, Runner, function_tool
from reading import read_file

model, prompt = sys.argv[1:]
agent = Agent("reviewer", instructions="You are a careful reviewer.", model=model, tools=[function_tool(read_file)])
print(Runner.run_sync(agent, prompt, max_turns=50).final_output)
