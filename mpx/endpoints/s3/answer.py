"""What S3 answers in XML: fields, and records of several fields. Pure."""

from mpx.endpoints.web.bounded_xml import BoundedXml, XmlError

_RECORD_LEVEL, _FIELD_LEVEL, _INNER_LEVEL = 2, 3, 4  # of elements; what is deeper is not looked at


class S3AnswerError(XmlError):
    """What a server sends is no answer of S3."""


class S3Answer(BoundedXml):
    """One answer: `fields` right in its root, and `records` of that with their names, without name spaces.

    What a field holds is named after both, as `Owner.ID`.
    """

    error, protocol, record = S3AnswerError, "S3", "record"

    def __init__(self, body: bytes) -> None:
        """Read it; raises S3AnswerError."""
        super().__init__()
        self.root = ""
        self.fields: dict[str, str] = {}
        self.records: list[tuple[str, dict[str, str]]] = []
        self._open: list[str] = []
        self._current: dict[str, str] = {}
        # White space comes first from servers that take long, so that nobody takes them for dead.
        self.parse(body.lstrip(), is_end=True)

    def start(self, name: str) -> None:
        """See BoundedXml."""
        self._open.append(name.rpartition(" ")[2])
        self._text.clear()
        if len(self._open) == 1:
            self.root = self._open[0]
        elif len(self._open) == _RECORD_LEVEL:
            self.begin_record()
            self._current = {}

    def end(self) -> None:
        """See BoundedXml."""
        level, name = len(self._open), self._open.pop()
        if level == _INNER_LEVEL:
            self._current[f"{self._open[-1]}.{name}"] = self.text_here
        elif level == _FIELD_LEVEL:
            self._current[name] = self.text_here
        elif level == _RECORD_LEVEL:
            if self._current:
                self.records.append((name, self._current))
            else:
                self.fields[name] = self.text_here
            self.end_record()
        self._text.clear()

    def named(self, name: str) -> list[dict[str, str]]:
        """Return the records of a name, in their order."""
        return [fields for each, fields in self.records if each == name]
