"""What the providers' own libraries make of the test server.

Asks for every scenario over every protocol, and prints what it saw as JSON:
`{protocol: {scenario: {text, reasoning, calls, stop, usage}}}`. Then it holds a
conversation of two turns over each, handing back what the library gave it, so
that the server's record shows what a library sends.

usage: sdk.py URL SCENARIO...
"""

import json
import sys

import anthropic
import openai
from google import genai
from google.genai import types
from pydantic import BaseModel

URL, SCENARIOS = sys.argv[1], sys.argv[2:]
KEY = "sk-sdk"
SYSTEM = "be brief"
QUESTION = "find both"
TOOL = "lookup"
ABOUT = "Looks up."
SCHEMA = {"type": "object", "properties": {"q": {"type": "integer"}}}
RESULT = "a result"


class Verdict(BaseModel):
    """What the structured scenario answers with."""

    name: str
    count: int


def view(text, reasoning, calls, stop, usage):
    names = ("input", "cached", "cache_written", "output", "reasoning")
    counted = {name: count or 0 for name, count in zip(names, usage)}
    calls = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return {"text": text or "", "reasoning": reasoning or "", "calls": calls, "stop": stop, "usage": counted}


class Chat:
    """OpenAI's Chat Completions."""

    stops = {"stop": "end", "tool_calls": "tools", "length": "length", "content_filter": "filtered"}

    def __init__(self):
        self.client = openai.OpenAI(api_key=KEY, base_url=f"{URL}/v1", max_retries=0)
        self.tools = [
            {"type": "function", "function": {"name": TOOL, "description": ABOUT, "parameters": SCHEMA}}
        ]

    def ask(self, scenario, messages=None, **more):
        messages = messages or [{"role": "user", "content": QUESTION}]
        count = {"include_usage": True}
        with self.client.chat.completions.stream(
            model=scenario, messages=messages, stream_options=count, **more
        ) as stream:
            for _ in stream:
                pass
            return stream.current_completion_snapshot

    def see(self, scenario):
        answer = self.ask(scenario)
        choice, usage = answer.choices[0], answer.usage
        message = choice.message
        calls = [(c.function.name, json.loads(c.function.arguments)) for c in message.tool_calls or []]
        into, out = usage.prompt_tokens_details, usage.completion_tokens_details
        return view(
            message.content,
            getattr(message, "reasoning_content", None),
            calls,
            self.stops[choice.finish_reason],
            (usage.prompt_tokens, into.cached_tokens, into.cache_write_tokens, usage.completion_tokens, out.reasoning_tokens),
        )

    def parse(self):
        answer = self.client.chat.completions.parse(
            model="structured", messages=[{"role": "user", "content": QUESTION}], response_format=Verdict
        )
        return answer.choices[0].message.parsed.model_dump()

    def converse(self):
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
        said = self.ask("conversation", messages, tools=self.tools).choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        for call in said.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": RESULT})
        self.ask("conversation", messages, tools=self.tools)


class Responses:
    """OpenAI's Responses."""

    stops = {"max_output_tokens": "length", "content_filter": "filtered"}

    def __init__(self):
        self.client = openai.OpenAI(api_key=KEY, base_url=f"{URL}/v1", max_retries=0)
        self.tools = [
            {"type": "function", "name": TOOL, "description": ABOUT, "parameters": SCHEMA, "strict": False}
        ]
        self.common = {"store": False, "include": ["reasoning.encrypted_content"]}

    def ask(self, scenario, items=None, **more):
        items = items or [{"type": "message", "role": "user", "content": QUESTION}]
        with self.client.responses.stream(model=scenario, input=items, **self.common, **more) as stream:
            last = None
            for event in stream:
                last = event
            return last.response

    def see(self, scenario):
        answer = self.ask(scenario)
        calls = [i for i in answer.output if i.type == "function_call"]
        thoughts = [s.text for i in answer.output if i.type == "reasoning" for s in i.summary]
        ends = "tools" if calls else "end"
        stop = self.stops[answer.incomplete_details.reason] if answer.status == "incomplete" else ends
        usage = answer.usage
        into, out = usage.input_tokens_details, usage.output_tokens_details
        return view(
            answer.output_text,
            "".join(thoughts),
            [(call.name, json.loads(call.arguments)) for call in calls],
            stop,
            (usage.input_tokens, into.cached_tokens, into.cache_write_tokens, usage.output_tokens, out.reasoning_tokens),
        )

    def parse(self):
        answer = self.client.responses.parse(model="structured", input=QUESTION, text_format=Verdict)
        return answer.output_parsed.model_dump()

    def converse(self):
        items = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": QUESTION}]}]
        more = {"instructions": SYSTEM, "tools": self.tools, "max_output_tokens": 256}
        said = self.ask("conversation", items, **more).output
        items += [item.model_dump(exclude_none=True, warnings=False) for item in said]
        calls = [item for item in said if item.type == "function_call"]
        items += [{"type": "function_call_output", "call_id": c.call_id, "output": RESULT} for c in calls]
        self.ask("conversation", items, **more)


class Messages:
    """Anthropic's Messages."""

    stops = {"end_turn": "end", "tool_use": "tools", "max_tokens": "length", "refusal": "filtered"}

    def __init__(self):
        self.client = anthropic.Anthropic(api_key=KEY, base_url=URL, max_retries=0)
        self.tools = [{"name": TOOL, "description": ABOUT, "input_schema": SCHEMA}]

    def ask(self, scenario, messages=None, **more):
        messages = messages or [{"role": "user", "content": QUESTION}]
        with self.client.messages.stream(model=scenario, messages=messages, max_tokens=256, **more) as stream:
            return stream.get_final_message()

    def see(self, scenario):
        answer = self.ask(scenario)
        of = lambda kind: [block for block in answer.content if block.type == kind]
        usage = answer.usage
        cached, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
        return view(
            "".join(block.text for block in of("text")),
            "".join(block.thinking for block in of("thinking")),
            [(call.name, call.input) for call in of("tool_use")],
            self.stops[answer.stop_reason],
            # Its input is what was neither read from the cache nor written to it.
            (
                usage.input_tokens + cached + written,
                cached,
                written,
                usage.output_tokens,
                usage.output_tokens_details.thinking_tokens,
            ),
        )

    def parse(self):
        messages = [{"role": "user", "content": QUESTION}]
        answer = self.client.messages.parse(
            model="structured", messages=messages, max_tokens=256, output_format=Verdict
        )
        return answer.parsed_output.model_dump()

    def converse(self):
        messages = [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}]
        more = {"system": [{"type": "text", "text": SYSTEM}], "tools": self.tools}
        said = self.ask("conversation", messages, **more)
        messages.append({"role": "assistant", "content": said.content})
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": RESULT, "is_error": False}
            for block in said.content
            if block.type == "tool_use"
        ]
        messages.append({"role": "user", "content": results})
        self.ask("conversation", messages, **more)


class Gemini:
    """Google's Gemini."""

    stops = {"STOP": "end", "MAX_TOKENS": "length", "SAFETY": "filtered"}

    def __init__(self):
        options = types.HttpOptions(base_url=URL)
        self.client = genai.Client(api_key=KEY, http_options=options, vertexai=False)
        declared = types.FunctionDeclaration(name=TOOL, description=ABOUT, parameters_json_schema=SCHEMA)
        self.config = types.GenerateContentConfig(
            system_instruction=SYSTEM,
            max_output_tokens=256,
            tools=[types.Tool(function_declarations=[declared])],
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )

    def see(self, scenario):
        chunks = list(self.client.models.generate_content_stream(model=scenario, contents=QUESTION))
        parts = [p for c in chunks for p in (c.candidates[0].content.parts or [])]
        calls = [p.function_call for p in parts if p.function_call]
        usage = chunks[-1].usage_metadata
        stop = self.stops[chunks[-1].candidates[0].finish_reason.value]
        thoughts = usage.thoughts_token_count or 0
        return view(
            "".join(p.text for p in parts if p.text and not p.thought),
            "".join(p.text for p in parts if p.text and p.thought),
            [(call.name, call.args) for call in calls],
            "tools" if calls and stop == "end" else stop,
            (
                usage.prompt_token_count,
                usage.cached_content_token_count,
                0,
                usage.candidates_token_count + thoughts,
                thoughts,
            ),
        )

    def parse(self):
        schema = Verdict.model_json_schema()
        config = types.GenerateContentConfig(response_mime_type="application/json", response_json_schema=schema)
        answer = self.client.models.generate_content(model="structured", contents=QUESTION, config=config)
        return Verdict.model_validate_json(answer.text).model_dump()

    def converse(self):
        contents = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]
        ask = lambda: self.client.models.generate_content(
            model="conversation", contents=contents, config=self.config
        )
        said = ask().candidates[0].content
        contents.append(said)
        results = [
            types.Part(function_response=types.FunctionResponse(id=c.id, name=c.name, response={"output": RESULT}))
            for c in (part.function_call for part in said.parts)
            if c
        ]
        contents.append(types.Content(role="user", parts=results))
        ask()


PROTOCOLS = {"OpenAi": Chat, "Responses": Responses, "Anthropic": Messages, "Gemini": Gemini}
seen = {}
for name, protocol in PROTOCOLS.items():
    library = protocol()
    seen[name] = {scenario: library.see(scenario) for scenario in SCENARIOS}
    seen[name]["parsed"] = library.parse()
    library.converse()
json.dump(seen, sys.stdout)
