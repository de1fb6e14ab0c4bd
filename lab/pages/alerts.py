"""Print `reference/alerts.md` from the kinds in `controller.says.alert_kinds.kinds`. `make docs` runs it."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from controller.says.alert_kinds.kinds import SECTIONS, AlertKind
from wording.times import duration

_HEAD = """# Alerts

Look up here which alert has a pager's title, and when it opens. Its runbook has the meaning and the steps, and
`kontrast check` and the page print the next step with the names of your cluster. Alerts are rows of the output
`alerts` ([outputs](outputs.md)), and [Send alerts](../how-to/alerting.md) connects them to Alertmanager.

## How an alert lives

An alert is one problem of one subject. Its id is the kind, and the subject unless that is the whole cluster:
`NoController`, `BrokerCrashed/broker 3`. Kontrast evaluates alerts every second, and immediately when a broker
registers or leaves, or when clients lose or regain partitions. Beyond a hundred groups of partitions with different
causes, lost and regained partitions wait a millisecond for each ten more groups.

| state | meaning |
| --- | --- |
| `open` | the problem exists. `since_ms` is its start, which may precede the row |
| `resolved` | the problem ended. The row names the reason |
| `unknown` | ZooKeeper was out of reach for ten seconds, or a complete read must follow lost records |

- **Updates.** A change of severity or brokers is published at once, a change of the sentence or of the number of
  partitions at most every five seconds. Kontrast ignores a change that reverts before the next heartbeat. Rows that
  open or update an alert carry `expected`, `action`, `evidence` and `examples`.
- **Occurrences.** An unclean election cannot be undone. Such an alert stays open for the time in the tables after its
  last occurrence, and counts the occurrences. Its end does not mean that someone fixed it.
- **Silence is not health.** Time comes from the stream, so without heartbeats Kontrast writes no alerts.
  [KontrastReplicaStale](../runbooks/KontrastReplicaStale.md) then pages.

## One incident, one page

An *incident* groups missing brokers that share partitions, or that belong to one rack, and that left within a third
of their session timeout plus a tick of ZooKeeper, or that stopped cleanly within a minute. Its first broker names it
for as long as it lasts, for example `broker 3`, and a later incident of this broker is `broker 3 (2)`. This name is the
`group` of all its alerts.
`brokers` lists every cause since the alert opened, and the sentence names the current ones.

- **One alert of each kind per incident.** `partitions` has the count, `examples` ten names.
- **One page for its partitions**: `PartitionsOffline` if clients lost some, which then also counts partitions that
  reject acks=all, otherwise `PartitionsUnderMinIsr`. It names the topics that suffer most, the brokers that help
  most, and the brokers that must stay up.
- **One page for its brokers**: `BrokerCrashed`, only a warning if the partitions page already. A page of more than
  five seconds stays one.
- **The controller's own alerts.** `PartitionsLeaderless` and `ControllerOverdue/elections` cover live replicas that
  the controller does not elect. Deletions and reassignments that wait for brokers are one alert per kind and cluster.

## Reduced severity

Two reasons lower an alert to info, if every missing broker has one:

- **A clean shutdown.** The broker is shutting down cleanly, did so within ten minutes, or returned from it within
  five minutes. What it takes from clients pages after one minute (`clean_stop_pages_after_seconds`).
- **A maintenance window** ([how to](../how-to/alerting.md#announce-maintenance)) for the broker. Occurrences without
  a broker need a window of the whole cluster.

Missing replicas of live brokers with such a reason open no alert. Alerts on the current controller, partitions whose
in-sync replicas are all in failed log directories, and alerts on Kontrast itself keep their severity.

## Commands in the runbooks

`ZK` is a ZooKeeper server with the chroot (`zk1:2181/kafka`), `BOOTSTRAP` a live broker (`kafka1:9092`). If brokers
need a login, add `--command-config FILE` to Kafka's tools (kafka-leader-election.sh: `--admin.config FILE`). If
ZooKeeper uses TLS, add `-zk-tls-config-file FILE` after `ZK` to zookeeper-shell.sh. Before ZooKeeper 3.5, `get PATH`
takes no `-s`.

**Move the controller** means `zookeeper-shell.sh ZK delete /controller`. A live broker then becomes controller, loads
the cluster and elects missing leaders, within seconds, or ten seconds to a minute from 100,000 partitions on. Dead
leaders stay without a successor meanwhile, so wait for the new controller (`zookeeper-shell.sh ZK get /controller`)
before the next step. It does not know which brokers were shutting down or which log directories had failed, and it
accepts edited znodes as they are. Write no other znode by hand unless a runbook asks for it.

Older tools take `--zookeeper ZK` in place of `--bootstrap-server BOOTSTRAP`: kafka-topics.sh before 2.2,
kafka-configs.sh before 2.5, kafka-reassign-partitions.sh before 2.6. Before 2.4 elections use
`kafka-preferred-replica-election.sh --zookeeper ZK`.
"""
_N = {"partitions": "N partitions", "brokers": "broker N", "broker": "N", "subject": "topic …"}


def alerts_page() -> str:
    """Return the page. Its tables leave out the steps of a kind, because the runbook has them."""
    return "\n".join([_HEAD, *(_table(section, kinds) for section, kinds in SECTIONS.items())])


def _table(section: str, kinds: Iterable[AlertKind]) -> str:
    head = ["| alert | severity | title | opens |", "| --- | --- | --- | --- |"]
    rows = [
        f"| {_linked(kind)} | {kind.severity.value} | {kind.headline.format(**_N)} | {_opens(kind)} |" for kind in kinds
    ]
    return "\n".join([f"## {section}\n", *head, *rows, ""])


def _linked(kind: AlertKind) -> str:
    return f"[{kind.name}](../runbooks/Kontrast{kind.name}.md)"


def _opens(kind: AlertKind) -> str:
    """Return when an alert of the kind opens, how long it stays, and the metric that counts it."""
    at_once = "at once" if not kind.patience_ms or kind.lasts_ms else f"after {duration(kind.patience_ms)}"
    parts = [at_once if kind.patience_else is None else f"{at_once}; {kind.patience_else}"]
    if kind.lasts_ms:
        until = f", or until {kind.ends_early}" if kind.ends_early else ""
        parts.append(f"Stays {duration(kind.lasts_ms)}{until}")
    if kind.divergence is not None:
        parts.append(f'Counted in `kontrast_divergences_total{{kind="{kind.divergence}"}}`')
    if kind.several_of:
        parts.append("Counted in `kontrast_divergences_total` by its subject")
    return ". ".join(part.rstrip(".") for part in parts)


if __name__ == "__main__":
    sys.stdout.write(alerts_page())
