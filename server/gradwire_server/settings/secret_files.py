"""Secrets in files: ``GRADWIRE_API_KEYS_FILE`` names a file that holds the API keys.

Docker, Compose and Kubernetes mount secrets as files. Neither ``docker inspect`` nor the environment of a child process
shows them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic.fields import FieldInfo
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

SECRETS: Final = ("api_keys", "admin_keys")
"""The settings that a file can hold."""

SUFFIX: Final = "_FILE"
MAX_FILE_BYTES: Final = 1 << 20


class SecretFiles(PydanticBaseSettingsSource):
    """Reads the files that ``GRADWIRE_<SECRET>_FILE`` variables name.

    A file can hold one key per line: line ends count as commas. Keyword arguments take precedence over files.

    Args:
        settings: the settings to fill.
        variables: the environment. Default: the environment of this process.
    """

    def __init__(self, settings: type[BaseSettings], variables: Mapping[str, str] | None = None) -> None:
        super().__init__(settings)
        self._variables = os.environ if variables is None else variables

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """The text of one setting's file, or ``None`` when no variable names a file.

        Raises:
            ValidationError: when the plain variable is set too, or the file is empty or unreadable.
        """
        variable = str(self.config.get("env_prefix", "")) + field_name.upper()
        path = self._variables.get(variable + SUFFIX)
        if not path or (field_name in self.current_state and variable not in self._variables):
            return None, field_name, False
        if self._variables.get(variable):
            raise self._refusal(field_name, f"{variable}{SUFFIX} is set too; set only one of them")
        try:
            with Path(path).open(encoding="utf-8") as file:
                text = file.read(MAX_FILE_BYTES + 1)
        except (OSError, UnicodeDecodeError) as error:
            cause = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            raise self._refusal(field_name, f"{variable}{SUFFIX}: cannot read {path}: {cause}") from None
        if len(text) > MAX_FILE_BYTES:
            raise self._refusal(field_name, f"{variable}{SUFFIX}: {path} is larger than {MAX_FILE_BYTES} bytes")
        text = text.strip()
        if not text:
            raise self._refusal(field_name, f"{variable}{SUFFIX}: {path} is empty")
        return text if text.startswith("[") else ",".join(text.split("\n")), field_name, False

    def __call__(self) -> dict[str, Any]:
        """The contents of the files by the setting's name."""
        found = {}
        for name, field in self.settings_cls.model_fields.items():
            if name in SECRETS:
                value, key, _ = self.get_field_value(field, name)
                if value is not None:
                    found[key] = value
        return found

    def _refusal(self, name: str, message: str) -> ValidationError:
        # A path may contain braces, hence the template. The message never contains the file's content.
        problem = PydanticCustomError("secret_file", "{message}", {"message": message})
        line = InitErrorDetails(type=problem, loc=(name,), input=None)
        return ValidationError.from_exception_data(self.settings_cls.__name__, [line])
