"""The only NinjaAPI: routers of the apps, errors, documentation."""

from ninja import NinjaAPI

from accounts.api import router as accounts
from accounts.auth import ApiAuth
from agentapp import errors
from conversations.api import router as conversations
from conversations.api_attachments import router as attachments
from conversations.webhooks.api import router as webhooks
from tools_admin.api import router as configuration
from tools_admin.knowledge_api import router as knowledge

api = NinjaAPI(title="Agent chat", version="1", auth=ApiAuth(), docs_url=None, urls_namespace="api")
api.add_router("", accounts)
api.add_router("", conversations)
api.add_router("", attachments)
api.add_router("", configuration)
api.add_router("", webhooks)
api.add_router("", knowledge)
errors.register(api)
