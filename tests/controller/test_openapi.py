"""What the description of REST says to those who make clients of it."""

from running_controller import Running
from wire_switches import WireSwitch

Network = tuple[Running, dict[int, WireSwitch]]


def test_it_tells_of_tokens_errors_and_what_is_no_json(network: Network) -> None:
    told = network[0].get("openapi.json")
    assert [each["scheme"] for each in told["components"]["securitySchemes"].values()] == ["bearer"]
    assign = told["paths"]["/path-sets"]["post"]
    assert assign["security"]
    for code in ("400", "401", "403", "404", "409", "413", "422", "429", "503"):
        problem = assign["responses"][code]["content"]["application/json"]["schema"]["$ref"]
        assert problem.endswith("/Problem")
    answers = {
        name: told["paths"][name]["get"]["responses"]["200"] for name in ("/events", "/metrics", "/topology")
    }
    kinds = {name: list(answer["content"]) for name, answer in answers.items()}
    assert kinds == {
        "/events": ["text/event-stream"],
        "/metrics": ["text/plain"],
        "/topology": ["application/json"],
    }
    assert "path_set" in answers["/events"]["description"]
