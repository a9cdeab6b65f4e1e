"""The Google Gen AI SDK, on Google's own route."""

from client import Client

CLIENT = Client(
    name="Google Gen AI SDK",
    registry="pip",
    packages=("google-genai",),
    route="/v1beta/models/…:generateContent",
    provider="gemini",
    command=("python", "$programs/google_genai.py", "$model", "$prompt"),
    environment={"GOOGLE_GEMINI_BASE_URL": "$url", "GEMINI_API_KEY": "$key"},
)
