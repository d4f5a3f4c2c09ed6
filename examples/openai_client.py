"""The OpenAI client against your installation: a streamed answer, and a tool that runs on this side.

pip install openai
AGENTAPP_URL=http://127.0.0.1:8000 AGENTAPP_KEY=aa_… python examples/openai_client.py "How is the weather in Rome?"
"""

import json
import os
import sys
from typing import Any

from openai import OpenAI

WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a town.",
        "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
    },
}


def weather(town: str) -> str:
    return f"It is sunny in {town}, 24 °C."


def main(question: str) -> None:
    client = OpenAI(base_url=os.environ["AGENTAPP_URL"] + "/v1", api_key=os.environ["AGENTAPP_KEY"])
    print("You may ask:", ", ".join(model.id for model in client.models.list()))

    messages: list[Any] = [{"role": "user", "content": question}]
    while True:  # a route's model, with a tool of ours
        reply = client.chat.completions.create(model="route-general", messages=messages, tools=[WEATHER])
        message = reply.choices[0].message
        if not message.tool_calls:
            break
        messages.append(message)
        for call in message.tool_calls:
            if call.type == "function":
                result = weather(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    print("Route:", message.content)

    agent = next(model.id for model in client.models.list() if model.id.startswith("agent-"))
    print("Agent: ", end="")
    for chunk in client.chat.completions.create(
        model=agent, messages=[{"role": "user", "content": question}], stream=True
    ):
        print(chunk.choices[0].delta.content or "", end="", flush=True)
    print()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "How is the weather in Rome?")
