from django.db import migrations
from pydantic import SecretStr

import agentapp.encryption


def encrypt(apps, schema_editor):
    for row in apps.get_model("accounts", "IdempotentAnswer").objects.exclude(status=None).iterator():
        row.answer = SecretStr(bytes(row.body).decode())
        row.save(update_fields=["answer"])


def decrypt(apps, schema_editor):
    for row in apps.get_model("accounts", "IdempotentAnswer").objects.exclude(status=None).iterator():
        row.body = row.answer.get_secret_value().encode()
        row.save(update_fields=["body"])


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial")]

    operations = [
        migrations.AddField("idempotentanswer", "answer", agentapp.encryption.EncryptedTextField()),
        migrations.RunPython(encrypt, decrypt),
        migrations.RemoveField("idempotentanswer", "body"),
    ]
