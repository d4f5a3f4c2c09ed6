"""What can be wrong with a file that somebody adds to a message, in words for them."""

from django.utils.translation import gettext_lazy as _

from conversations.errors import ConversationError

MB = 1_000_000


class EmptyFile(ConversationError):
    code = "empty_file"
    status = 422

    def __init__(self) -> None:
        super().__init__(_("The file is empty. Check it and add it again."))


class FileTooLarge(ConversationError):
    code = "file_too_large"
    status = 413

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            _("The file has %(size)s MB; at most %(limit)s MB are possible. Make it smaller or split it."),
            size=-(-size // MB),
            limit=limit // MB,
        )


class UnsupportedFile(ConversationError):
    code = "unsupported_file"
    status = 415

    def __init__(self) -> None:
        super().__init__(
            _(
                "Files of this kind cannot be read. Possible are pictures (PNG, JPEG, WebP, GIF), PDF, Word (.docx), "
                "HTML, Markdown, CSV and other plain texts."
            )
        )


class BadPicture(ConversationError):
    code = "bad_picture"
    status = 422

    def __init__(self, reason: str) -> None:
        super().__init__(
            _("The picture has too many pixels. Make it smaller: 50 megapixels are possible.")
            if reason in ("pixels", "memory", "time", "output")
            else _("The picture is damaged or not what its name says. Open it in a program and save it again.")
        )


class NoSpaceLeft(ConversationError):
    code = "quota_exceeded"
    status = 413

    def __init__(self, used: int, limit: int) -> None:
        super().__init__(
            _(
                "Your files take %(used)s MB of the %(limit)s MB that you have. "
                "Delete conversations with files that you do not need any more."
            ),
            used=used // MB,
            limit=limit // MB,
        )


class TooManyAttachments(ConversationError):
    code = "too_many_attachments"

    def __init__(self, count: int, limit: int) -> None:
        super().__init__(
            _("%(count)s files are attached; a message takes %(limit)s. Send them in several messages."),
            count=count,
            limit=limit,
        )


class AttachmentElsewhere(ConversationError):
    code = "attachment_elsewhere"
    status = 409

    def __init__(self, name: str) -> None:
        super().__init__(_("%(name)s belongs to another conversation. Add the file here once more."), name=name)


class AttachmentSent(ConversationError):
    code = "attachment_sent"
    status = 409

    def __init__(self) -> None:
        super().__init__(_("This file was sent with a message. It is deleted together with its conversation."))
