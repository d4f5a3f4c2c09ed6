#!/usr/bin/env python3
"""Django's command line, and `manage.py up`, which starts everything."""

import os
import sys
from pathlib import Path

from dotenv import load_dotenv

if __name__ == "__main__":
    load_dotenv(Path(__file__).with_name(".env"))  # optional settings of this checkout; the real environment goes first
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentapp.settings")
    if sys.argv[1:2] == ["up"]:
        # Before Django is loaded: its settings need what this generates, and its import fits into the database's start.
        from agentapp.embedded.up import main

        sys.exit(main(sys.argv[2:]))
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
