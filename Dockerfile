# syntax=docker/dockerfile:1
# Web, worker and beat are the same image with different commands; see docker-compose.yml.

FROM node:22-slim AS frontend
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --omit=dev --no-audit --no-fund

FROM python:3.11-slim AS build
WORKDIR /app
RUN python -m venv /venv
COPY requirements.lock ./
RUN /venv/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY . .
COPY --from=frontend /app/node_modules node_modules
# Static files need settings that load, and none of their values: these end with this step.
RUN SECRET_KEY=only-for-collecting-static-files-00000000 \
    ENCRYPTION_KEYS=only-for-collecting-static-files-00000000000 \
    DATABASE_URL=postgresql:///unused REDIS_URL=redis://unused \
    /venv/bin/python manage.py collectstatic --no-input --verbosity 0 --ignore languages \
 && rm -rf node_modules

FROM python:3.11-slim
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin agentapp \
 && mkdir -p /data /secrets/app /secrets/postgres /secrets/valkey \
 && chown -R agentapp:agentapp /data /secrets
COPY --from=build /venv /venv
COPY --from=build /app /app
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 VAR_DIR=/data
WORKDIR /app
USER 10001
EXPOSE 8000
CMD ["python", "-m", "agentapp.web", "--bind", "0.0.0.0", "--port", "8000"]
