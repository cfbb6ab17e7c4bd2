"""Captions and footnotes of a report, and how a p-value is written. All texts are fixed."""

from typing import Final

METRICS: Final = (
    "In percent, higher is better; every target is ranked among all places. Mean ± sample standard "
    "deviation over seeds. Best of a column in bold. Underlined: the strongest baseline of a "
    "column, tuned or not. A number links to its results, with settings, log and command. Revisit: "
    "targets at one of the user's 512 visits before; new: all others."
)
STARS: Final = (
    "Leads are in percentage points. Stars (* p < 0.05, ** p < 0.01, *** p < 0.001): the largest "
    "of three p-values, each with Holm's correction, by the Wilcoxon test, a bootstrap over users, "
    "and a bootstrap over users and seeds. Faint: a side has one seed, so the noise of seeds is "
    "not known and there is no verdict. A test uses as many seeds as both rows have, a mean all "
    "seeds of its row. Stars of an ablation are against the full model."
)
PAPER: Final = (
    "Next to a value: the paper's own, a mean of three seeds. The paper corrects 15 tests of its "
    "main table together, and 5 for each city and metric of its ablation; its ablation reports "
    "other values of the full model than its main table."
)
NOT_PAPER_PRESET: Final = (
    "CaST-POI is not trained with the preset paper here; decisions 7 and 15 in docs/paper.md list "
    "the differences."
)
KNOWN_TIME: Final = (
    "These methods are given the time of each target; do not compare their numbers with those of "
    "other methods."
)
ORACLE: Final = (
    "An oracle is another project's own model, trained by its code on our split and ranked by our "
    "evaluation. It verifies our copy of the method and does not compete."
)
TESTS: Final = (
    "The row of a heading against others. Seeds: how many were used on each side, equally many of "
    "both; a counting method has none. Points: difference of the two means in percentage points. "
    "Interval: of the bootstrap over users and seeds (over users where a side has one seed), so "
    "wide that all intervals of the family together cover 95 %. All p-values are two-sided, with "
    "Holm's correction over the given number of tests; stars follow the largest. Effect: "
    "matched-pairs rank-biserial correlation, -1 to 1. Last: users for whom the row is better, "
    "equal and worse."
)
REFERENCE: Final = (
    "In percentage points. First our mean minus the paper's, in bold where they are more than 1.5 "
    "points apart. Then the change of a variant from the full model over equally many seeds, ours "
    "and the paper's, each with its stars; in bold where only one of the two is significant. The "
    "paper's stars are those of a Wilcoxon test alone."
)
ORDER: Final = (
    "Place of each method, and its MRR in percent. Leave one out: the last visit of each user is a "
    "target, and training has the later visits of others. Time: training ends at one moment for "
    "everybody, and targets are all visits after a second moment, or the last of each user. The "
    "cities are cleaned differently, so compare orders, not values."
)
STRATA: Final = (
    "HR@10 in percent, mean over seeds; n is the number of targets; best of a row in bold. Strata "
    "of fewer than 100 targets are faint, or in italics: they are too small to compare methods. "
    "The protocol defines tail, torso and head. Same visits in train: the longest sequence of "
    "visits that ends with the target and that a train trajectory of anybody has too; a method "
    "that memorises is good at long ones."
)
POOL: Final = (
    "Expected HR@10 in percent if the target were ranked among that many places drawn at random, "
    "in closed form from its rank among all places (last column)."
)
BEYOND: Final = (
    "Km off: from the first recommended place to the target, 0 where it is right. Coverage: share "
    "of all places in anybody's top ten. Popularity: mean check-ins in train of first and listed "
    "places; below, that of the places visited. Softmax, share of right first places and expected "
    "calibration error (ECE, ten bins): learned methods only, because the scores of others are no "
    "logits. Means over seeds."
)
COSTS: Final = (
    "Every method in a process of its own, with one thread. CPU seconds, so that other work on the "
    "machine hardly counts. Training: around the epochs, and as many epochs as the runs of the row "
    "had; an epoch is the difference between a short training and a shorter one. Answer: median "
    "over single requests, each for the ten best places of a user, with filters and probabilities. "
    "Memory: of training and answers."
)
CITIES: Final = (
    "Revisits: targets at one of the user's 512 visits before. Equal fingerprints, equal splits. "
    "Places are all candidates of the city; the paper counts those that occur in its split."
)
METHODS: Final = (
    "Trials: of the search that found the preset, with the time of all of them. Parameters and "
    "training: on the first city that records them. Most parameters are place vectors, so they "
    "grow with the city. Training is the wall time of the fastest seed; other work ran on the "
    "machine, so it is an upper bound and no comparison of speed. A variant is trained separately, "
    "unless its card says that it has the weights of another row."
)
SOURCES: Final = (
    "Code: the version of the method's code, or in older results a SHA-256 of it; equal ones in a "
    "row: one code made all seeds. Training and ranking: wall time. A plus after a commit: with "
    "uncommitted changes. A dash: no log was kept."
)


def p_value(p: float) -> str:
    """A p-value as papers write it."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_equals(p: float) -> str:
    """A p-value in a sentence: p < 0.001, p = 0.024."""
    return f"p {p_value(p)}" if p < 0.001 else f"p = {p_value(p)}"
