"""The exceptions of the package. Messages name the value, the limit and the place."""


class LookalikeError(Exception):
    """What every exception of this package is."""


class SettingError(LookalikeError, ValueError):
    """A setting outside of its range, or settings that contradict one another."""


class RecipeError(LookalikeError, ValueError):
    """A recipe that cannot be read, or that asks for something impossible."""


class InputError(LookalikeError, ValueError):
    """Data that cannot be read or understood as a whole."""


class BadRowError(InputError):
    """A row that cannot be used, in a run with ``strict=True``."""


class LimitError(LookalikeError, ValueError):
    """A stated limit was passed."""


class OutputError(LookalikeError, RuntimeError):
    """A result that could not be produced."""


class ServiceError(LookalikeError, RuntimeError):
    """A refusal of the service.

    ``status`` is the HTTP status, ``code`` the stable name of the problem, ``detail`` the sentence that
    says what is wrong.
    """

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(f"{code} ({status}): {detail}")
        self.status = status
        self.code = code
        self.detail = detail

    def __reduce__(self):
        return type(self), (self.status, self.code, self.detail)
