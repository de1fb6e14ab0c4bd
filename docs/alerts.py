"""Prints `alerts.md`: how alerts live, and what each kind says and asks for, from `controller.contract.alert_kinds`.

`make docs` runs it. The page's form and what is true of all alerts are here, how a person works on one in `runbooks/`.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from controller.contract.alert_kinds.kinds import SECTIONS, AlertKind  # noqa: E402 (needs the path above)

_WIDTH = 120

_HEAD = """# Alerts

What Kontrast tells a person, as rows of the output `alerts` ([outputs.md](outputs.md)). This page is made from
`controller/contract/alert_kinds/` by `make docs`; a test holds it current. They reach a person directly by
`kontrast serve`, or by rules of Prometheus: [one way or the other](deployment.md#how-alerts-reach-a-person).

## How an alert lives

- **An alert is one problem of one subject.** Its id is the kind, with the subject behind it where that is not the
  whole cluster: `NoController`, `BrokerCrashed/broker 3`. It keeps the id from its opening to its end. All is judged
  at every heartbeat (one a second), and at once when brokers come or go or partitions cannot be used (again).
- **Opened once.** `state` is `open`, `since_ms` says since when it is the case, which may be earlier than the row.
  Some kinds open at once, others when it has lasted for a while: below, *Opens*.
- **Updated** when its severity or its brokers change, at once, and when its sentence or its number of partitions does,
  at a heartbeat and every five seconds at most: what comes and goes between two heartbeats is no news. `expected`,
  `action`, `evidence` and `examples` are in the rows that open or update it.
- **Resolved** when it is no longer the case; the row says what ended it. What happened at a moment, an unclean election
  or a write that nothing explains, cannot be undone: it stays open for a while after it happened last (*Stays open*),
  with how often, and is then resolved. That is no sign that anybody saw to it.
- **Unknown** when the cluster cannot be seen: the forwarder has had no ZooKeeper session for ten seconds, or records
  were lost and no complete read has come in since. What is not seen is neither resolved nor opened. When the cluster
  is seen again, what is still the case is open with its old `since_ms`, the rest is resolved. Alerts of Kontrast
  itself stay known.
- **Silence is not health.** Time comes from the stream: if no heartbeat comes, nothing is judged and no row is
  written. [KontrastReplicaStale](runbooks/KontrastReplicaStale.md) is the alert for that.

## One incident, one page

Brokers that are away together are one *incident*: those that have replicas of the same partitions, those of one rack
(or of none) that left within a third of their session's timeout and a tick of ZooKeeper, and those that were in it
before and have not recovered. It has the name of the broker with which it began, `broker 3`, and keeps it while others
join and leave it; `group` is that name in all its alerts. `brokers` of a row are all that have been its cause since
it opened, and its sentence names those of now. Incidents that come to share partitions become one, under the older
name.

- **Of each kind an incident has one alert at most.** `partitions` counts, `examples` names ten.
- **One page for its partitions**: `PartitionsOffline` where clients cannot use some, which then counts those that
  refuse acks=all too, else `PartitionsUnderMinIsr`. It says which topics suffer most and which brokers brought back
  first help most. What has just enough replicas left, and who must stay up because others have nothing, is a line.
- **One page for its brokers**, `BrokerCrashed`; a warning where its partitions page already.
- What a live replica could lead and the controller does not elect is the controller's: `PartitionsLeaderless`,
  `ControllerOverdue/elections`. Deletions and reassignments that wait for live brokers are one alert of a kind for the
  cluster.

## What is held back to info

Where one of these explains an alert, it has severity info:

- **A shutdown in order**: each broker that the partitions lack is shutting down in order, or did within ten minutes
  and is not back yet, or came back from that within five minutes. One broker without one of these reasons, and nothing
  is held back. When the time is over and it is still away, the alert gets its own severity: what a broker that was
  stopped and forgotten keeps offline pages after ten minutes.
- **A maintenance window** ([cli.md](cli.md#work-on-brokers-that-shall-page-nobody)) that covers each broker that is the
  cause. What happened at a moment to no broker in particular is held back by a window of the whole cluster only.

Replicas of live brokers that one of these reasons explains open nothing at all (`PartitionsUnderReplicated`).

Never held back: what is said of the controller as it is now, partitions whose in-sync replicas are in failed log
directories only, and Kontrast itself.

## Commands in the runbooks

`ZK` is a ZooKeeper server with the cluster's chroot (`zk1:2181/kafka`), `BOOTSTRAP` a live broker (`kafka1:9092`).
Kafka's own tools are in its `bin`; where brokers ask for a login, give them `--command-config FILE`
(kafka-leader-election.sh: `--admin.config FILE`), and where ZooKeeper speaks TLS, zookeeper-shell.sh
`-zk-tls-config-file FILE` behind `ZK`.

| to | type |
| --- | --- |
| see the cluster as ZooKeeper has it, without a broker's help | `kontrast snapshot --zookeeper ZK` |
| see what happened, from a ZooKeeper server's files | `kontrast replay --zk-data DIR --chroot /kafka --from ZXID` |
| read a znode with its owner and versions | `zookeeper-shell.sh ZK get -s PATH` (before ZooKeeper 3.5: `get PATH`) |
| move the controller | `zookeeper-shell.sh ZK delete /controller` |

"Move the controller" in a runbook means the last: the live brokers try to become controller, one of them does, loads
the cluster from ZooKeeper and elects for what has no leader. It takes seconds, with 100,000 partitions and more ten
seconds to a minute, in which no leader that dies is replaced. Wait for the new one
(`zookeeper-shell.sh ZK get /controller`) before the next step. It forgets what only the old one's memory had: which
brokers were shutting down and which log directories had failed; and it takes znodes that were edited by hand as they
are. Write no other znode by hand unless a runbook says so.

Before 2.2 (kafka-topics.sh), 2.4 (elections), 2.5 (kafka-configs.sh) and 2.6 (kafka-reassign-partitions.sh) Kafka's
tools take `--zookeeper ZK` in place of `--bootstrap-server BOOTSTRAP`; before 2.4 elections are asked for by
`kafka-preferred-replica-election.sh --zookeeper ZK`.
"""


def alerts_page() -> str:
    """The whole page."""
    sections = ["\n".join([f"## {section}\n", *map(_entry, kinds)]) for section, kinds in SECTIONS.items()]
    return "\n".join([_HEAD, *sections])


def _entry(kind: AlertKind) -> str:
    """One kind: what it says and asks for."""
    facts = "\n".join(_wrapped(f"**{name}**: {text}", "- ") for name, text in _facts(kind))
    return f"### {kind.name}\n\n{_wrapped(kind.meaning)}\n\n{facts}\n"


def _facts(kind: AlertKind) -> Iterator[tuple[str, str]]:
    runbook = f"Kontrast{kind.name}"
    yield "Severity", f"{kind.severity.value}. **Runbook**: [{runbook}](runbooks/{runbook}.md)"
    if kind.expected is not None:
        yield "Expected of the controller", _sentence(kind.expected)
    yield "What a person can do", kind.action
    yield "Opens", _sentence("; ".join(filter(None, [_patience(kind), kind.patience_else])))
    if kind.lasts_ms:
        until = f", or until {kind.ends_early}" if kind.ends_early else ""
        yield "Stays open", f"{_duration(kind.lasts_ms)} after it happened last{until}."
    if kind.divergence is not None:
        yield "Counted", f'in `kontrast_divergences_total{{kind="{kind.divergence}"}}`.'


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _patience(kind: AlertKind) -> str:
    if kind.lasts_ms:
        return "at once when it happens"
    return f"when it has lasted for {_duration(kind.patience_ms)}" if kind.patience_ms else "at once"


def _duration(milliseconds: int) -> str:
    seconds = milliseconds // 1_000
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min"


def _wrapped(text: str, bullet: str = "") -> str:
    # A path or a command is one word however long it is.
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )


if __name__ == "__main__":
    sys.stdout.write(alerts_page())
