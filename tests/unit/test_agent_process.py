"""The process of an agent on this machine: a shell that stands in for it."""

import os

from colltune.measure.agent_process import AgentProcess


def _started() -> AgentProcess:
    return AgentProcess(["sh", "-c", "echo ready ranks=1; cat"], dict(os.environ), start_timeout_s=30.0)


def test_what_was_killed_can_still_be_closed() -> None:
    process = _started()
    process.kill()
    assert not process.send("measure 1")
    assert process.close() != 0


def test_it_is_written_to_until_it_is_closed() -> None:
    process = _started()
    assert process.send("measure 1")
    assert process.read(30.0) == "measure 1"
    assert process.close() == 0
    assert not process.send("measure 2")
