"""A session of LangChain's agent, a LangGraph loop: python langgraph_agent.py MODEL PROMPT."""

import sys

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from reading import read_file

model, prompt = sys.argv[1:]
agent = create_agent(ChatOpenAI(model=model, streaming=True), [read_file], system_prompt="You are a careful reviewer.")
state = agent.invoke({"messages": [("user", prompt)]}, {"recursion_limit": 100})
print(state["messages"][-1].text)
