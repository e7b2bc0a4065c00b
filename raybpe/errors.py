"""Every error that raybpe raises on purpose.

    RaybpeError                 something the reader of the message can act on
    ├── UsageError              an option, argument or combination of them is wrong (exit code 2)
    │   ├── PatternError        a pretokenization pattern cannot be read; holds `.position`
    │   └── ArgumentTypeError   an argument has the wrong type; a TypeError as well
    ├── InputError              text that cannot be read or used; names file and byte offset
    │   ├── InvalidUtf8Error    bytes that are not UTF-8, under the policy `error`
    │   └── ChangedInputError   an input is not what the plan or the earlier run saw
    ├── CountsError             a counts file is corrupt, foreign, or made with other settings
    ├── FormatError             a tokenizer file that is unreadable, hostile or not byte-level BPE
    ├── VerifyError             an export does not give the ids that it should
    ├── ExhaustedError          `strict` and no pair is left before the vocabulary is full
    ├── OutputError             the output cannot be written; what was there before is untouched
    ├── CapacityError           a count or a size passes what is exact or what a machine holds
    ├── ClusterError            Ray is missing, unreachable, or cannot hold the work
    └── TransientError          input or output that may succeed if tried again

Only TransientError is ever retried. Everything else is permanent: the same call gives the
same error. A message is one paragraph that names the file, the offset, the option, and the cure.
"""


class RaybpeError(Exception):
    """Base of all errors that raybpe raises on purpose."""


class UsageError(RaybpeError):
    """An option, argument or combination of them is wrong."""


class PatternError(UsageError):
    """A pretokenization pattern cannot be read.

    Attributes:
        position: index of the offending code point in the pattern, or None.
    """

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position

    def __reduce__(self) -> tuple[type, tuple[str, int | None]]:
        return type(self), (str(self), self.position)


class ArgumentTypeError(UsageError, TypeError):
    """An argument has the wrong type."""


class InputError(RaybpeError):
    """Text that cannot be read or used."""


class InvalidUtf8Error(InputError):
    """Bytes that are not UTF-8, under the policy `error`."""


class ChangedInputError(InputError):
    """An input is not what the plan or the earlier run saw."""


class CountsError(RaybpeError):
    """A counts file is corrupt, foreign, or made with other settings."""


class FormatError(RaybpeError):
    """A tokenizer file is unreadable, hostile, or not byte-level BPE."""


class VerifyError(RaybpeError):
    """An export does not give the ids that it should."""


class ExhaustedError(RaybpeError):
    """`strict`, and no pair is left before the vocabulary is full."""


class OutputError(RaybpeError):
    """The output cannot be written; what was there before is untouched."""


class CapacityError(RaybpeError):
    """A count or a size passes what is exact or what a machine holds."""


class ClusterError(RaybpeError):
    """Ray is missing, unreachable, or cannot hold the work."""


class TransientError(RaybpeError):
    """Input or output failed in a way that may succeed if tried again."""
