"""A world in which a run can be made again from any point: models and tools that know what they did the first time."""

import json
from collections import Counter, defaultdict
from contextvars import ContextVar
from datetime import UTC, datetime

from agentapp.engine import (
    Allow,
    ContextGuard,
    EffectClass,
    InterruptQueue,
    MemoryJournal,
    ReActAgent,
    RetryPolicy,
    RunSuspended,
    ScriptedChatModel,
    Tool,
    ToolCall,
    validate_pairing,
)

current_key: ContextVar[str] = ContextVar("current_key", default="")


class WatchedJournal(MemoryJournal):
    """Notes which effects ran, and when each record was made."""

    def __init__(self, records=None):
        super().__init__(records)
        self.log = []

    async def call(self, key, kind, request, effect, **options):
        async def watched():
            self.log.append(("ran", key))
            token = current_key.set(key)
            try:
                result = await effect()
            finally:
                current_key.reset(token)
            self.log.append(("done", key))
            return result

        return await super().call(key, kind, request, watched, **options)


class World:
    """What each request was answered with. A request that was never made before has no answer here."""

    def __init__(self, scripts, known=None):
        self.scripts = {name: iter(script) for name, script in scripts.items()}
        self.known = {} if known is None else known
        self.is_recording = known is None
        self.asked = Counter()
        self.puts = []
        self.queue = InterruptQueue()

    def model(self, name, **options):
        def reply(messages, **request):
            validate_pairing(messages)
            tools = [tool["function"]["name"] for tool in request["tools"] or ()]
            shown = [message.to_dict() for message in messages]
            key = json.dumps([current_key.get(), name, shown, tools, request["response_format"], request["stream"]])
            if self.is_recording:
                self.known.setdefault(key, []).append(next(self.scripts[name]))
            self.asked[key] += 1
            answer = self.known[key][self.asked[key] - 1]
            return answer(self) if callable(answer) and not isinstance(answer, Exception) else answer

        return ScriptedChatModel([reply] * 200, name=name, **options)

    def interrupt(self, text):
        self.puts.append((current_key.get(), text))
        self.queue.put(text, id=f"{current_key.get()} {text}")


class Run:
    """One agent over one journal in one world."""

    def __init__(self, world, records, *, native, streams, small_context, many_tools, suspends=False):
        self.world, self.events, self.suspends = world, [], suspends
        self.journal = WatchedJournal(records)
        abilities = {"json_mode": True, "tool_call": native, "streaming": streams}
        guard = ContextGuard(1_600, compact_model=world.model("compactor"), keep_recent=3) if small_context else None
        child = ReActAgent(
            world.model("child"), [self.tool("inner", lambda n=0: f"inner {n}")], clock=clock, retry=NO_WAIT
        )
        tools = [
            self.tool("echo", lambda n=0: f"echo {n}"),
            self.tool("bad", self.fail),
            self.tool("long", lambda n=0: f"{n} " * 900),
            self.tool("tell", lambda n=0: world.interrupt(f"interrupt {n}") or "told"),
            child.as_tool("helper", "Helps."),
            *(self.tool(f"spare_{n}", lambda n=0: "spare") for n in range(9 if many_tools else 0)),
        ]
        self.agent = ReActAgent(
            world.model("parent", abilities=abilities),
            tools,
            pinned_tools=["echo", "bad", "long", "tell", "helper"],
            max_iterations=14,
            guard=guard,
            journal=self.journal,
            emit=self.events.append,
            gate=self.gate,
            clock=clock,
            stream_direct=streams,
            retry=NO_WAIT,
        )

    @staticmethod
    def tool(name, body):
        async def run(n=0):
            return body(n)

        return Tool(name, f"The tool {name}.", {"type": "object"}, run, effect_class=EffectClass.READ)

    @staticmethod
    def fail(n):
        raise ValueError(f"no {n}")

    async def gate(self, tool, arguments, key):
        if self.suspends and tool.name in ("echo", "inner"):
            raise RunSuspended("approval", key)
        return Allow({"n": 9}) if arguments.get("n") == 3 and tool.name == "echo" else Allow()

    async def work(self):
        result = await self.agent.run("the question", interrupts=self.world.queue)
        if result.tool_steps and not result.streamed:
            async for _ in self.agent.stream_answer("the question", result):
                pass
        return result

    def durable_events(self):
        return Counter(json.dumps([e.channel, e.data]) for e in self.events if not is_text(e))

    def texts(self):
        return [e for e in self.events if is_text(e)]


NO_WAIT = RetryPolicy(retries=9, first_wait=0.0)


def clock():
    return datetime(2026, 1, 31, 12, tzinfo=UTC)


def is_text(event):
    """Answer text belongs to no record."""
    return event.channel == "answer" and event.data["status"] != "done"


def recorded_events(records):
    return Counter(json.dumps([e["channel"], e["data"]]) for record in records.values() for e in record["events"])


def in_dialect(turn, number, native):
    """A model reply: a text, an error, or calls; in the JSON dialect only the first of them."""
    if isinstance(turn, str | Exception) or callable(turn):
        return turn
    if native:
        return [ToolCall(f"id{number}_{slot}", name, arguments) for slot, (name, arguments) in enumerate(turn)]
    name, arguments = turn[0]
    return json.dumps({"type": "tool_call", "reasoning": f"why {number}", "tool_name": name, "tool_args": arguments})


def final(text, native):
    return text if native else json.dumps({"type": "final_answer", "reasoning": "done", "answer": text})


def grouped(log):
    """The places in a log at which each key ran and was done."""
    places = defaultdict(dict)
    for place, (what, key) in enumerate(log):
        places[key][what] = place
    return places
