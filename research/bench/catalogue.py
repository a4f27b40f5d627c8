"""The libraries that Sabal is compared with, and their methods for each job.

A job is named after Sabal's strategy. A library that is not listed for a job has no such strategy;
if it has one that cannot be measured here, `reasons` says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sabal.errors import UnknownNameError, did_you_mean

SCRIPTS = Path(__file__).parent / "peers"


@dataclass(frozen=True)
class Peer:
    """A library that Sabal is compared with.

    Parameters
    ----------
    name : str
        Name of the library.
    script : Path
        The file that drives it (see `research.bench.peers`).
    requirements : tuple of str
        What pip installs into its environment.
    jobs : mapping of str to tuple of str
        The methods of the script that do a job, by job.
    reasons : mapping of str to str
        Why it cannot do a job, by job.
    python : Path or None
        An interpreter that has it already; None to create an environment.
    """

    name: str
    script: Path
    requirements: tuple[str, ...] = ()
    jobs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    python: Path | None = None

    def coverage(self, job: str) -> str:
        """Return its methods for `job`, or the reason why it has none."""
        if job in self.jobs:
            return ", ".join(self.jobs[job])
        return self.reasons.get(job, "no such strategy")


PEERS = (
    Peer(
        name="scikit-activeml",
        script=SCRIPTS / "scikit_activeml.py",
        requirements=("scikit-activeml==1.0.1",),
        jobs={
            "random": ("RandomSampling",),
            "entropy": ("UncertaintySampling entropy",),
            "margin": ("UncertaintySampling margin",),
            "least-confidence": ("UncertaintySampling least confident",),
            "badge": ("Badge",),
            "kcenter": ("CoreSet",),
            "typiclust": ("TypiClust",),
            "bald": ("GreedyBALD",),
            "batchbald": ("BatchBALD", "BatchBALD with its default samples"),
        },
    ),
    Peer(
        name="bmdal-reg",
        script=SCRIPTS / "bmdal_reg.py",
        requirements=("bmdal-reg==3.0.2",),
        jobs={
            "random": ("random",),
            "badge": ("kmeanspp on gradients",),
            "kcenter": ("maxdist",),
            "bait": ("bait",),
            "bayesian-coreset": ("fw",),
        },
        reasons={
            "entropy": "made for regression",
            "margin": "made for regression",
            "least-confidence": "made for regression",
            "bald": "for regression only (maxdiag)",
            "batchbald": "for regression only (maxdet)",
        },
    ),
    Peer(
        name="small-text",
        script=SCRIPTS / "small_text.py",
        requirements=("small-text==1.4.1",),
        jobs={
            "random": ("RandomSampling",),
            "entropy": ("PredictionEntropy",),
            "margin": ("BreakingTies",),
            "least-confidence": ("LeastConfidence",),
            "kcenter": ("GreedyCoreset",),
            "bald": ("BALD",),
        },
    ),
    Peer(
        name="batchbald_redux",
        script=SCRIPTS / "batchbald_redux.py",
        requirements=("batchbald_redux==2.0.5",),
        jobs={"bald": ("get_bald_batch",), "batchbald": ("get_batchbald_batch",)},
    ),
    Peer(
        name="modAL",
        script=SCRIPTS / "modal.py",
        # On PyPI, `modal` is something else altogether.
        requirements=("modAL-python==0.4.2.1",),
        jobs={
            "entropy": ("entropy_sampling",),
            "margin": ("margin_sampling",),
            "least-confidence": ("uncertainty_sampling",),
        },
        reasons={"bald": "only for a skorch network with dropout"},
    ),
    Peer(
        name="baal",
        script=SCRIPTS / "baal.py",
        requirements=("baal==2.1.0",),
        jobs={
            "random": ("Random",),
            "entropy": ("Entropy",),
            "margin": ("Margin",),
            "least-confidence": ("Certainty",),
            "bald": ("BALD",),
            "power-bald": ("PowerSampling",),
            "batchbald": ("BatchBALD",),
        },
    ),
)


def chosen_peers(peers: Sequence[str | Peer] | None) -> tuple[Peer, ...]:
    """Return the peers by name, all of them for None; a Peer is kept as it is."""
    if peers is None:
        return PEERS
    known = {peer.name: peer for peer in PEERS}
    chosen = []
    for peer in peers:
        if isinstance(peer, Peer):
            chosen.append(peer)
        elif peer in known:
            chosen.append(known[peer])
        else:
            raise UnknownNameError(
                f"peers out of {', '.join(known)}",
                repr(peer),
                did_you_mean(peer, known, otherwise="pick some of these, or none"),
            )
    return tuple(chosen)
