"""The admin of what administrators configure; each part is in a module of its own."""

from django.contrib import admin

from tools_admin.admin_agents import AgentAdmin as AgentAdmin
from tools_admin.admin_budgets import AgentBudgetAdmin as AgentBudgetAdmin
from tools_admin.admin_connectors import ConnectorAdmin as ConnectorAdmin
from tools_admin.admin_documents import KnowledgeDocumentAdmin as KnowledgeDocumentAdmin
from tools_admin.admin_models import DefaultAdmin as DefaultAdmin
from tools_admin.admin_tools import ToolAdmin as ToolAdmin

admin.site.index_template = "admin/start.html"
