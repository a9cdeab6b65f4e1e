"""LangChain's agent, a LangGraph loop."""

from client import Client

CLIENT = Client(
    name="LangGraph",
    registry="pip",
    packages=(
        "langgraph",
        "langchain",
        "langchain-openai",
    ),
    route="/v1/chat/completions",
    provider="openai",
    command=("python", "$programs/langgraph_agent.py", "$model", "$prompt"),
    environment={"OPENAI_BASE_URL": "$url/v1", "OPENAI_API_KEY": "$key"},
)
