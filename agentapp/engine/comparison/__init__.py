"""Comparing routes: the same tasks, tools, faults and limits through each loop, graded and counted.

Not part of what `agentapp.engine` exports; whoever compares imports it from here.
"""

from .attempts import Attempt, attempt
from .faults import FaultyTools
from .figures import Figures, Recovery, figures_of
from .grading import Grade, admits, grade
from .scripted import ScriptedWorker
from .task_files import read_csv, read_yaml
from .tasks import BadTaskSet, Fault, Script, ScriptedCall, Task, TaskSet

__all__ = [
    "Attempt",
    "BadTaskSet",
    "Fault",
    "FaultyTools",
    "Figures",
    "Grade",
    "Recovery",
    "Script",
    "ScriptedCall",
    "ScriptedWorker",
    "Task",
    "TaskSet",
    "admits",
    "attempt",
    "figures_of",
    "grade",
    "read_csv",
    "read_yaml",
]
