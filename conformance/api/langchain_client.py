"""LangChain's OpenAI chat class against a server: `python langchain_client.py URL`. Prints what it got, as JSON."""

import asyncio
import json
import sys

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings
from pydantic import BaseModel

MESSAGES = [SystemMessage("You are a helpful assistant."), HumanMessage("What is the capital of France?")]


class City(BaseModel):
    """A city."""

    name: str
    country: str


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"Sunny in {city}"


def main(url: str) -> dict[str, object]:
    """Use everything that these classes have for modelc's endpoints."""
    options = {"base_url": url, "api_key": "none", "model": "any", "max_retries": 0}
    chat = ChatOpenAI(**options, temperature=0, max_tokens=60, stream_usage=True)
    whole = chat.invoke(MESSAGES)
    chunks = list(chat.stream(MESSAGES))
    logprobs = chat.bind(logprobs=True, top_logprobs=2).invoke(MESSAGES).response_metadata["logprobs"]["content"]
    call = chat.bind_tools([get_weather], tool_choice="get_weather").invoke(MESSAGES)
    streamed = None
    for chunk in chat.bind_tools([get_weather], tool_choice="required").stream(MESSAGES):
        streamed = chunk if streamed is None else streamed + chunk
    result = ToolMessage(get_weather.invoke(call.tool_calls[0]["args"]), tool_call_id=call.tool_calls[0]["id"])
    after = chat.bind_tools([get_weather]).invoke([*MESSAGES, call, result])
    city = chat.with_structured_output(City, method="json_schema").invoke("Describe the city of Paris.")
    by_call = chat.with_structured_output(City, method="function_calling").invoke("Describe the city of Paris.")
    vectors = OpenAIEmbeddings(**options, check_embedding_ctx_length=False).embed_documents(["a", "b"])
    return {
        "text": whole.content,
        "streamed": "".join(str(chunk.content) for chunk in chunks),
        "usage": whole.usage_metadata["total_tokens"],
        "streamed_usage": sum(chunk.usage_metadata["total_tokens"] for chunk in chunks if chunk.usage_metadata),
        "batch": [message.content for message in chat.batch([MESSAGES, MESSAGES])],
        "async": asyncio.run(chat.ainvoke(MESSAGES)).content,
        "logprobs": len(logprobs),
        "call": call.tool_calls[0]["args"],
        "streamed_call": streamed.tool_calls[0]["args"],
        "answered": isinstance(after, AIMessage),
        "city": city.model_dump(),
        "city_by_call": by_call.model_dump(),
        "completion": OpenAI(**options, temperature=0, max_tokens=5).invoke("The capital of France is"),
        "vectors": [len(vector) for vector in vectors],
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
