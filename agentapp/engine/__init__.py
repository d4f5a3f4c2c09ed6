"""A framework-free agent engine: tools, a ReAct loop, and a journal that makes runs resumable.

>>> import asyncio
>>> from agentapp.engine import ReActAgent, ScriptedChatModel, ToolCall, tool
>>> @tool
... def add(a: int, b: int) -> int:
...     "Adds two numbers."
...     return a + b
>>> model = ScriptedChatModel([ToolCall("1", "add", {"a": 2, "b": 3}), "It is 5."])
>>> result = asyncio.run(ReActAgent(model, [add]).run("What is 2 + 3?"))
>>> result.answer, result.stop_reason
('It is 5.', 'final_answer')

With a real model: `OpenAIChatModel(openai.AsyncOpenAI(), "name", abilities={"tool_call": True, "streaming": True})`.
Nothing here imports a web framework, and importing it loads no provider's client.
"""

from .agent import Agent
from .attempts import RetryPolicy
from .chain import ModelChain
from .context import Compaction, ContextGuard, micro_compact
from .dag import DAGAgent, DAGExecutor, DAGPlanner
from .delegation import AgentTool
from .direct import DirectAgent, Lookup
from .drafts import BadDraft, DraftRules, NotDurable, draft_of, draft_text, require_durable
from .errors import (
    BadModelRequest,
    ContentFiltered,
    ContextOverflow,
    EngineError,
    IncompleteStream,
    LimitReached,
    ModelError,
    ModelPaused,
    ModelRefused,
    ModelUnavailable,
    PairingError,
    PlanError,
    ReplayMismatch,
    RunSuspended,
    ScriptExhausted,
    StructuredOutputError,
    UnknownOutcome,
)
from .evaluation import Verdict, evaluate_draft
from .events import Event
from .history import merge_adjacent, repair_history, validate_pairing
from .interrupts import InterruptQueue
from .journal import CallKind, EffectClass, Journal, MemoryJournal
from .json_schema import schema_fault
from .json_text import extract_json
from .limits import Limits
from .messages import Chunk, Completion, Message, ToolCall, Usage
from .models import ChatModel, ModelRegistry
from .openai_model import OpenAIChatModel
from .patience import LeftAlone, PatientModel
from .plan_analysis import Analysis, PlanAnalyzer
from .plan_check import validate_plan
from .plan_execute import PlanExecuteAgent
from .planning import Planner
from .plans import Plan, PlanStep, StepOutcome
from .prices import Prices
from .react import ReActAgent
from .registry import ToolRegistry
from .relay import RelayAgent
from .results import AgentResult, StepResult
from .rewoo import ReWOOAgent
from .routing import Route, Workflow, extract_parameters, route_request
from .scripted_model import ScriptedChatModel
from .selection import TOOL_SELECTION_MAX, TOOL_SELECTION_THRESHOLD, select_tools
from .structured import UNSET, StructuredCallResult, structured_llm_call
from .tokens import budget_for, estimate_tokens
from .tool_batch import Allow, Deny, Gate, current_call_key
from .tool_function import tool
from .tools import Artifact, Tool, ToolResult, clock_stopped, sign_of_life

__all__ = [
    "TOOL_SELECTION_MAX",
    "TOOL_SELECTION_THRESHOLD",
    "UNSET",
    "Agent",
    "AgentResult",
    "AgentTool",
    "Allow",
    "Analysis",
    "Artifact",
    "BadDraft",
    "BadModelRequest",
    "CallKind",
    "ChatModel",
    "Chunk",
    "Compaction",
    "Completion",
    "ContentFiltered",
    "ContextGuard",
    "ContextOverflow",
    "DAGAgent",
    "DAGExecutor",
    "DAGPlanner",
    "Deny",
    "DirectAgent",
    "DraftRules",
    "EffectClass",
    "EngineError",
    "Event",
    "Gate",
    "IncompleteStream",
    "InterruptQueue",
    "Journal",
    "LeftAlone",
    "LimitReached",
    "Limits",
    "Lookup",
    "MemoryJournal",
    "Message",
    "ModelChain",
    "ModelError",
    "ModelPaused",
    "ModelRefused",
    "ModelRegistry",
    "ModelUnavailable",
    "NotDurable",
    "OpenAIChatModel",
    "PairingError",
    "PatientModel",
    "Plan",
    "PlanAnalyzer",
    "PlanError",
    "PlanExecuteAgent",
    "PlanStep",
    "Planner",
    "Prices",
    "ReActAgent",
    "ReWOOAgent",
    "RelayAgent",
    "ReplayMismatch",
    "RetryPolicy",
    "Route",
    "RunSuspended",
    "ScriptExhausted",
    "ScriptedChatModel",
    "StepOutcome",
    "StepResult",
    "StructuredCallResult",
    "StructuredOutputError",
    "Tool",
    "ToolCall",
    "ToolRegistry",
    "ToolResult",
    "UnknownOutcome",
    "Usage",
    "Verdict",
    "Workflow",
    "budget_for",
    "clock_stopped",
    "current_call_key",
    "draft_of",
    "draft_text",
    "estimate_tokens",
    "evaluate_draft",
    "extract_json",
    "extract_parameters",
    "merge_adjacent",
    "micro_compact",
    "repair_history",
    "require_durable",
    "route_request",
    "schema_fault",
    "select_tools",
    "sign_of_life",
    "structured_llm_call",
    "tool",
    "validate_pairing",
    "validate_plan",
]
