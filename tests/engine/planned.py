"""What tests of planned loops share: plans as a planner sends them, and agents over a script."""

import json

from agentapp.engine import RetryPolicy, ToolCall

NO_WAIT = RetryPolicy(retries=0)


def step(id, tool_name="echo", args=None, after=(), task="", **more):
    """A planned call."""
    return {
        "id": id,
        "task": task or f"do {id}",
        "tool_name": tool_name,
        "tool_args": args or {},
        "depends_on": list(after),
        **more,
    }


def goal(id, after=(), task="", **more):
    """A planned goal."""
    return {"id": id, "task": task or f"reach {id}", "depends_on": list(after), **more}


def plan(*steps):
    """A planner's reply: a forced call."""
    return ToolCall("p", "plan", {"steps": list(steps)})


def judged(achieved, confidence=0.5, reasoning="because", final_answer=""):
    """An analyser's reply."""
    data = {"achieved": achieved, "confidence": confidence, "reasoning": reasoning, "final_answer": final_answer}
    return ToolCall("a", "judge", data)


def prompt(request):
    """All that a request says, as one text."""
    return "\n".join(message.text for message in request["messages"])


def states(events):
    """Plan steps in the order in which they changed."""
    return [(e.data["step_id"], e.data["status"]) for e in events if e.channel == "plan" and "step_id" in e.data]


def as_text(reply):
    """A forced call as a JSON text."""
    return json.dumps(reply.arguments)
