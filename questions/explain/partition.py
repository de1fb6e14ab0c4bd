"""State of a partition, the controller's next writes, and a person's options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from controller.contract.effect_rows import WITHDRAWN, Transition
from controller.contract.ids import NO_LEADER, BrokerId, TopicPartition
from controller.contract.leader_and_isr import LeaderAndIsr
from controller.contract.problem import UNUSABLE, Problem
from controller.contract.row import NOT_KNOWN_MS
from controller.contract.znodes import TopicZnode, ZnodeError, decode
from controller.rules.election import elect_offline
from controller.rules.releases import CAPPED_SINCE
from controller.says.alert_kinds import kinds
from controller.view.advice import advice_for
from controller.view.flawed_znodes import flawed_znodes, no_controller_because
from controller.view.health import (
    back_in_sync_for_acks_all,
    electable,
    is_without_session,
    needed_in_sync,
    reason_for,
    successor,
    takes_acks_all,
    whereabout,
)
from controller.view.held_back import held_back
from controller.view.types import Partition, Topic
from questions.explain.causes import causes_of, last_writes
from questions.explain.explanation import (
    Cause,
    Certainty,
    Explanation,
    Statement,
    explanation_of,
    findings_about,
    since_zxid,
)
from questions.picture import Origin, Picture
from wording.facts import replicas_in_words
from wording.sentences import bracketed, counted, in_order, listed, one_of
from wording.times import near

_LIVE, _DEAD = "live", "dead"
_ENABLED, _PERCENTAGE = "auto.leader.rebalance.enable", "leader.imbalance.per.broker.percentage"
_INTERVAL = "leader.imbalance.check.interval.seconds"


def not_preferred(picture: Picture, partition: Partition, value: LeaderAndIsr) -> Statement:
    """Return the reason why another replica leads than the preferred one, and when that ends."""
    preferred, header = partition.replicas[0], picture.context.header
    why = _why(picture, preferred, is_in_sync=preferred in value.isr)
    if preferred not in header.brokers:
        when = f"It can lead again once broker {preferred} is back and in sync"
    elif preferred not in value.isr:
        when = f"It can lead again once broker {preferred} is in sync"
    else:
        when = _when(picture, preferred)
    given = header.configuration.given.keys() >= {_ENABLED, _PERCENTAGE, _INTERVAL}
    is_seen = preferred not in value.isr or given
    says = f"broker {preferred} is not the leader{why}. {when}"
    return Statement("preferred", says, Certainty.SEEN if is_seen else Certainty.ASSUMED)


def _why(picture: Picture, preferred: BrokerId, *, is_in_sync: bool) -> str:
    left_ms, back_ms = _absence(picture, preferred)
    if left_ms is None and preferred not in picture.header.brokers:
        return ", because it is down"
    if left_ms is None:
        registered_ms = picture.written_ms.get(f"/brokers/ids/{preferred}", NOT_KNOWN_MS)
        since = "" if registered_ms == NOT_KNOWN_MS else f" and has been registered since {_at(registered_ms, picture)}"
        return f", although it is in sync{since}" if is_in_sync else f", because it is not in sync{since}"
    if back_ms is None:
        return f", because it has been away since {_at(left_ms, picture)}"
    return f", because it was away from {_at(left_ms, picture)} to {_at(back_ms, picture)}"


def _absence(picture: Picture, broker: BrokerId) -> tuple[int | None, int | None]:
    """Return the times when the broker last left and came back, by the rows of the past."""
    left_ms = back_ms = None
    for row in _moves(picture.story or (), broker):
        if row.to_state == _DEAD:
            left_ms, back_ms = row.time_ms, None
        elif row.to_state == _LIVE:
            back_ms = row.time_ms
    return left_ms, back_ms


def _moves(rows: Iterable[object], broker: BrokerId) -> Iterable[Transition]:
    transitions = (row for row in rows if isinstance(row, Transition) and row.status is not WITHDRAWN)
    return (row for row in transitions if row.subject == "broker" and row.broker == broker)


def _when(picture: Picture, preferred: BrokerId) -> str:
    header = picture.header
    settings = header.settings
    if not settings.auto_leader_rebalance_enable:
        return f"It stays so until a preferred election is asked for, because {_ENABLED} is false"
    elector = f"Controller {header.controller}" if header.acting else "No controller is active. The next one"
    interval = f"{settings.leader_imbalance_check_interval_seconds} s"
    most = settings.leader_imbalance_per_broker_percentage
    reassigned = "" if header.profile.rebalances_while_reassigning else ", while no partition is being reassigned"
    others = f"more than {most} % of the partitions that prefer broker {preferred} have another leader"
    return f"{elector} moves it back within {interval}{reassigned}, if {others}"


def _at(ms: int, picture: Picture) -> str:
    return near(ms, picture.as_of_ms)


def explain_partition(picture: Picture, tp: TopicPartition) -> Explanation:
    """Return the explanation of an existing partition."""
    topic = picture.topic(tp.topic)
    partition = None if topic is None else topic.partitions.get(tp.partition)
    assert topic is not None, f"there is no {tp}"
    assert partition is not None, f"there is no {tp}"
    facts = _PartitionFacts(picture, tp, topic, partition)
    problem = partition.problem
    return explanation_of(
        picture,
        f"partition {tp}",
        facts.headline(),
        is_well=problem is None and not topic.queued_for_deletion and facts.is_sound(),
        since=None if problem is None else picture.since(partition.problem_since_ms),
        statements=facts.statements(),
        causes=facts.causes(),
        findings=findings_about(picture, names=(str(tp),)),
    )


class _PartitionFacts:
    """A partition with the facts for its explanation."""

    def __init__(self, picture: Picture, tp: TopicPartition, topic: Topic, partition: Partition) -> None:
        self._picture, self._header, self._tp = picture, picture.context.header, tp
        self._topic, self._partition, self._value = topic, partition, partition.zk_state
        self._is_one_look = picture.origin is Origin.LOOK
        self._predicted = partition.value(self._header.controller_epoch)
        self._copies = replicas_in_words(self._value.isr if self._value else (), partition.replicas)

    def headline(self) -> str:
        """Return the partition's problem in a sentence, or its leader if it has no problem."""
        if self._topic.queued_for_deletion:
            return "its topic is being deleted"
        problem = self._partition.problem
        if problem is not None:
            usable = "" if problem in UNUSABLE else "usable, but "
            return f"{usable}{reason_for(problem, self._partition, self._topic, self._header, self._predicted)}"
        assert self._value is not None, "a partition without a state has a problem"
        registered = self._header.brokers.get(self._value.leader)
        if registered is not None and not registered.session and is_without_session(self._value.leader, self._header):
            leader = f"its leader, broker {self._value.leader}, has no session"
            return f"no process leads it, because {leader}; {self._copies}"
        return f"led by broker {self._value.leader}, {self._copies}"

    def statements(self) -> list[Statement]:
        """Return all known facts, the present first."""
        kept = not self._topic.queued_for_deletion
        found = [*self._state(), *self._replicas(), *([self._acks_all()] if kept else []), *self._next()]
        lagging = self._header.brokers.keys() & set(self._partition.replicas).difference(
            self._value.isr if self._value else ()
        )
        if self._value is not None and kept and lagging and (why := held_back(lagging, self._header)):
            found.append(Statement("held back", why))
        if self._partition.problem in UNUSABLE:
            found += self._ways_back()
        elif self._partition.unreadable and self._value is None:
            path = f"/brokers/topics/{self._tp.topic}/partitions/{self._tp.partition}/state"
            found += [Statement("do", each.mend) for each in flawed_znodes(self._header) if each.path == path]
        elif self._value is not None and kept:
            if self._value.leader != self._partition.replicas[0]:
                found.append(not_preferred(self._picture, self._partition, self._value))
            found += self._next_leader(self._value)
        return found

    def causes(self) -> tuple[Cause, ...] | None:
        """Return the steps that led to the present state, or the last writes of its znodes after a single read."""
        if not self._is_one_look:
            return causes_of(self._picture.story, self._partition.replicas)
        topic = f"/brokers/topics/{self._tp.topic}"
        state, value = f"{topic}/partitions/{self._tp.partition}/state", self._value
        by = "" if value is None else f", controller epoch {value.controller_epoch}"
        wrote = "" if value is None else f"leader {value.leader}, {replicas_in_words(value.isr)}{by}"
        brokers = [(f"/brokers/ids/{at}", f"broker {at} registered") for at in self._partition.replicas]
        paths = [(topic, f"replicas {in_order(self._partition.replicas)}"), (state, wrote), *brokers]
        return last_writes(
            self._picture, [*paths, ("/controller", f"broker {self._header.controller} became controller")]
        )

    def _state(self) -> list[Statement]:
        value = self._value
        found = [Statement("state", self._partition.state.word, Certainty.EXPECTED)]
        if value is None:
            lost = "not known, because its state cannot be read" if self._partition.unreadable else "none in ZooKeeper"
            return [*found, Statement("leader", lost)]
        leader = "none" if value.leader == NO_LEADER else f"broker {value.leader}"
        by = f"written under controller epoch {value.controller_epoch}"
        found += [
            Statement("leader", f"{leader}, leader epoch {value.leader_epoch}, {by}"),
            Statement("in sync", self._copies.removeprefix("in sync: ")),
            *self._edited(value),
        ]
        if value.recovering:
            found.append(Statement("recovering", "from an unclean election, which its leader has not confirmed yet"))
        return found

    def is_sound(self) -> bool:
        """Return whether a process leads the partition, and each replica is a copy."""
        value = self._value
        return value is None or not (is_without_session(value.leader, self._header) or [*self._edited(value)])

    def _edited(self, value: LeaderAndIsr) -> Iterator[Statement]:
        """Yield what only a person writes: a broker twice, which Kafka counts as two, and a leader out of its ISR."""
        for where, named in (("assignment", self._assigned() if self._picture.records else ()), ("ISR", value.isr)):
            if (distinct := len(set(named))) < len(named):
                twice = listed({broker for broker in named if named.count(broker) > 1})
                says = f"names {twice} twice, so it has {counted(distinct, 'copy')}, not {len(named)}"
                yield Statement(where, f"{bracketed(named)} {says}")
        if value.leader >= 0 and value.leader not in value.isr:
            yield Statement("ISR", f"lacks leader {value.leader}, so somebody edited the state")

    def _assigned(self) -> Sequence[BrokerId]:
        record = (self._picture.records or {}).get(f"/brokers/topics/{self._tp.topic}")
        try:
            znode = None if record is None else decode(record.content, TopicZnode)
        except ZnodeError:
            return ()  # `kontrast check` reports such a znode
        return () if znode is None else znode.partitions.get(self._tp.partition, ())

    def _replicas(self) -> list[Statement]:
        found: list[Statement] = []
        partition, header = self._partition, self._header
        isr = self._value.isr if self._value else ()
        for broker in sorted(partition.replicas):
            registered = header.brokers.get(broker)
            rack = f", rack {registered.rack}" if registered is not None and registered.rack else ""
            role = ["preferred"] if partition.replicas[0] == broker else []
            role += ["in sync" if broker in isr else "not in sync"]
            role += ["being added"] if broker in partition.adding else []
            role += ["being removed"] if broker in partition.removing else []
            role += ["its log directory failed"] if broker in partition.offline_dirs else []
            says = f"{whereabout(broker, header, knows_past=False)}{rack}: {', '.join(role)}"
            found.append(Statement("" if found else "replicas", says))
        return found

    def _acks_all(self) -> Statement:
        value, partition = self._value, self._partition
        if partition.unreadable and value is None:
            return Statement("acks=all", "not known, because its state cannot be read")
        if value is None or partition.problem in UNUSABLE:
            return Statement("acks=all", "rejected, because it has no live leader")
        rules = self._header.counting_rules
        needed = needed_in_sync(self._topic.min_insync_replicas, value.leader, len(partition.replicas), rules)
        by_topic, span = self._topic.min_insync_replicas, self._header.releases
        is_cap_known = (by_topic or 0) <= len(partition.replicas) or not span[0] < CAPPED_SINCE <= span[1]
        certainty = Certainty.SEEN if by_topic is not None and is_cap_known else Certainty.ASSUMED
        if takes_acks_all(partition, self._topic):
            return Statement(
                "acks=all", f"accepted: {len(value.isr)} in sync, min.insync.replicas needs {needed}", certainty
            )
        missing = back_in_sync_for_acks_all(partition)
        lacking = partition.in_sync_lacking
        some = "" if lacking == len(missing) else f"{lacking} of "
        until = f"{some}{listed(missing)} must get in sync" if missing else "no broker can help"
        return Statement(
            "acks=all",
            f"rejected: {needed - lacking} in sync, min.insync.replicas needs {needed}, and {until}",
            certainty,
        )

    def _next(self) -> Iterator[Statement]:
        header, partition = self._header, self._partition
        events = {action.event for action in partition.queue if action.writes} & header.events.keys()
        elector = f"controller {header.controller}" if header.acting else "no controller is active. The next one"
        for event in (header.events[key] for key in sorted(events)):
            yield Statement("next", f"{elector} handles {event.sentence}{since_zxid(event.zxid)}", Certainty.EXPECTED)
        due = self._predicted
        if partition.write_due and due is not None:
            says = f"{elector} must write leader {due.leader}, epoch {due.leader_epoch}, {replicas_in_words(due.isr)}"
            yield Statement("next", says, Certainty.EXPECTED)
        if partition.reassigning:
            yield Statement("next", self._reassignment(), Certainty.EXPECTED)

    def _reassignment(self) -> str:
        partition, isr = self._partition, self._value.isr if self._value else ()
        awaited = [at for at in partition.replicas if at not in isr and at not in partition.removing]
        if partition.adding:
            says = f"a reassignment adds {listed(partition.adding)}, and removes {listed(partition.removing)}"
            return f"{says} once the added replicas are in sync"
        if awaited:  # up to 2.3 no znode tells new replicas from old ones
            says = f"a reassignment waits until {listed(awaited, 'is')} in sync"
        else:
            says = "a reassignment has all its replicas in sync"
        return says + (f", then removes {listed(partition.removing)}" if partition.removing else "")

    def _ways_back(self) -> Iterator[Statement]:
        """Return the ways to make an unusable partition usable, with and without lost records."""
        problem, kind = self._partition.problem, kinds.PARTITIONS_LEADERLESS
        if problem is Problem.NOT_YET_CREATED and not self._partition.write_due:
            kind = kinds.CREATION_DUE
        else:
            yield Statement("comes back", self._comes_back(), Certainty.EXPECTED)
        if kind is kinds.CREATION_DUE or problem is Problem.LEADERLESS:
            yield Statement("do", advice_for(kind.advice, self._header))
        lost = (Problem.NO_LIVE_IN_SYNC_REPLICA, Problem.LEADERLESS)
        if self._value is not None and self._partition.problem in lost:
            yield self._unclean(self._value)

    def _comes_back(self) -> str:
        partition, header, value = self._partition, self._header, self._value
        elector = f"controller {header.controller}" if header.acting else "the next controller"
        if partition.problem is Problem.NO_LIVE_REPLICA_AT_CREATION:
            if not partition.replicas:
                return "when the topic's znode assigns brokers to it and a controller fails over"
            return f"when {one_of(partition.replicas)} registers. Then {elector} creates it"
        if value is None:
            return f"as soon as {elector} writes its first state"
        if partition.problem is Problem.ELECTION_DUE:
            elected = successor(partition, self._topic, header, self._predicted)
            return "as soon as " + (f"broker {elected} is elected" if elected is not None else "a leader is elected")
        if partition.problem is Problem.LEADERLESS:
            in_sync = electable(partition, value)
            live = [at for at in in_sync if at in header.brokers and at not in partition.offline_dirs]
            soon = f"within seconds, if {one_of(live)} has just returned. Otherwise " if self._is_one_look else ""
            return f"{soon}when the next controller elects {one_of(live)}"
        in_sync = electable(partition, value)
        none = "no assigned broker is in sync" if value.isr else "the ISR is empty"
        if not in_sync and header.allows_unclean_election_of(self._topic):
            returned = one_of(partition.replicas)
            return f"when {returned} returns, by an unclean election, which is allowed, because {none}"
        if not value.isr:
            return "only by an unclean election, because the ISR is empty"
        if not in_sync:
            return (
                f"when the topic's znode assigns {one_of(value.isr)} again and a controller fails over, with every "
                "acknowledged record. Neither a return nor a failover alone helps"
            )
        away = [at for at in in_sync if at not in header.brokers]
        failed = [at for at in in_sync if at in header.brokers]
        ways = [f"when {one_of(away)} returns"] if away else []
        ways += [f"when the log directory of {one_of(failed)} is back"] if failed else []
        return f"{', or '.join(ways)}, with every acknowledged record{self._unless_unclean(value, in_sync)}"

    def _unless_unclean(self, value: LeaderAndIsr, in_sync: Sequence[BrokerId]) -> str:
        """Return that another replica may be elected before, empty if it may not."""
        online = [at for at in self._header.brokers if at not in self._partition.offline_dirs]
        elected = self._elected_uncleanly(value, online)
        lagging = [at for at in self._partition.replicas if at not in value.isr]
        before = f"the next controller elects broker {elected} before, and loses records"
        if elected is None:
            if not lagging or not self._header.allows_unclean_election_of(self._topic):
                return ""
            before = f"if {one_of(lagging)} returns before, it is elected, and records are lost"
        forbid = f"If {one_of(in_sync)} can return, set unclean.leader.election.enable=false first"
        return f", but {before}. {forbid}"

    def _unclean(self, value: LeaderAndIsr) -> Statement:
        is_allowed = self._header.allows_unclean_election_of(self._topic)
        online = [at for at in self._header.brokers if at not in self._partition.offline_dirs]
        elected = elect_offline(self._partition.replicas, value.isr, online, allow_unclean=True)
        certainty = self._certainty_of_unclean()
        if elected is None:
            return Statement("unclean election", "would find no live replica either", Certainty.EXPECTED)
        if not elected.unclean:
            return Statement("unclean election", "is not needed, because a live replica is in sync", Certainty.EXPECTED)
        setting = f"unclean.leader.election.enable={str(is_allowed).lower()}"
        lost = f" and lose the records that only {listed(value.isr)} had" if value.isr else ""
        says = f"would make broker {elected.leader} leader{lost}"
        return Statement(
            "unclean election", f"{says} ({'allowed' if is_allowed else 'not allowed'}, {setting})", certainty
        )

    def _certainty_of_unclean(self) -> Certainty:
        return Certainty.ASSUMED if self._topic.unclean_election is None else Certainty.EXPECTED

    def _elected_uncleanly(self, value: LeaderAndIsr, online: Sequence[BrokerId]) -> BrokerId | None:
        """Return the broker that a controller elects uncleanly if it may, None if it may not or finds no live one."""
        header, by_topic = self._header, self._topic.unclean_election
        moves = header.controller == value.leader  # with the leader, so another broker's setting decides
        next_ones = header.brokers.keys() - {value.leader} if moves else {header.controller}
        may = any(map(header.allows_unclean_election_by, next_ones)) if by_topic is None else by_topic
        elected = elect_offline(self._partition.replicas, value.isr, online, allow_unclean=True) if may else None
        return elected.leader if elected is not None and elected.unclean else None

    def _next_leader(self, value: LeaderAndIsr) -> list[Statement]:
        online = [at for at in self._header.brokers if at != value.leader and at not in self._partition.offline_dirs]
        elected = elect_offline(self._partition.replicas, value.isr, online, allow_unclean=False)
        uncleanly = self._elected_uncleanly(value, online) if elected is None else None
        if elected is None and uncleanly is not None:
            lost = f"the records that only broker {value.leader} has are lost for good"
            says = f"broker {uncleanly} at once, by an unclean election, and {lost}"
            step = f"Set unclean.leader.election.enable=false before broker {value.leader} stops."
            return [Statement("next leader", says, self._certainty_of_unclean()), Statement("do", step)]
        says = f"none. Without broker {value.leader} it goes offline"
        if elected is not None:
            flawed = no_controller_because(self._header)
            first = f". A new controller elects none before the mend of {flawed.path}" if flawed else ""
            says = f"broker {elected.leader}, should broker {value.leader} fail{first}"
        return [Statement("next leader", says, Certainty.EXPECTED)]
