"""The equations of the CaST-POI paper, and of our own parts, in plain Python: slow, one number at
a time, no tensors.

Its inputs are visits and weights; it has no batches, padding, chunks or caches. Numbers of
equations follow the method section of the paper; constants follow `reference-facts.md`.
"""

import math
from typing import Any

from castpoi.geo.distance import (
    DISPLACEMENT_EDGES_KM,
    DISTANCE_GATE_EDGES_KM,
    SPATIAL_BIAS_EDGES_KM,
    TEMPORAL_BIAS_EDGES_HOURS,
)
from castpoi.model.castpoi import CastPoi
from castpoi.model.config import REVISIT_WINDOW
from tests.model.features.slow_habits import distance_km, habits, local_time
from tests.model.small import LAT, LON, Visit, next_moment

Vector = list[float]


class Reference:
    """The same model as the given one, computed the slow way."""

    def __init__(self, model: CastPoi) -> None:
        self.config = model.config
        self.weights: dict[str, Any] = {
            name: weight.double().tolist() for name, weight in model.state_dict().items()
        }

    # Place: e_c and beta_c

    def vector(self, place: int) -> Vector:
        vector: Vector = self.weights["place.weight"][place + 1]
        return vector

    def popularity(self, place: int) -> float:
        popularity: float = self.weights["popularity"][place + 1]
        return popularity

    # Token: x_i = W_in [e_p ; e_time ; e_geo] + e_pos

    def token(self, visits: list[Visit], number: int) -> Vector:
        place, at_us, offset = visits[number]
        before = visits[max(number - 1, 0)][0]
        vector = self.vector(place)
        parts = [*vector, *self.time(at_us, offset), *self.move(before, place)]
        token = self.linear("tokens.mix", parts)
        if self.config.known_time:
            token = added(token, self.next_time(visits, number))
        if self.config.positions == "absolute":
            slot = self.config.window - (len(visits) - number)
            return added(token, self.weights["tokens.position.weight"][slot])
        return token

    def next_time(self, visits: list[Visit], number: int) -> Vector:
        """Ours, if the time is known: when the next visit is, on the clock of this one."""
        _, at_us, offset = visits[number]
        is_last = number == len(visits) - 1
        next_us = next_moment(visits) if is_last else visits[number + 1][1]
        clock = local_time(next_us, offset)
        hour = clock.hour + (24 if clock.weekday() >= 5 else 0)
        wait = bucket_of((next_us - at_us) / 3.6e9, TEMPORAL_BIAS_EDGES_HOURS)
        vectors = self.weights["tokens.next_time.hour"], self.weights["tokens.next_time.wait"]
        return added(vectors[0][hour], vectors[1][wait])

    def time(self, at_us: int, offset: int) -> Vector:
        local = local_time(at_us, offset)
        hour = local.hour + local.minute / 60 + (local.second + local.microsecond / 1e6) / 3600
        circles: Vector = []
        for share in (hour / 24, local.weekday() / 7):
            circles += [math.sin(2 * math.pi * share), math.cos(2 * math.pi * share)]
        return [*circles, *self.weights["tokens.time.slot.weight"][int(hour // 6)]]

    def move(self, before: int, place: int) -> Vector:
        far = distance_km(before, place)
        bucket = bucket_of(far, DISPLACEMENT_EDGES_KM)
        degrees = [(LAT[place] - LAT[before]) / 0.1, (LON[place] - LON[before]) / 0.1]
        features = [math.log1p(far), *self.weights["tokens.move.bucket.weight"][bucket], *degrees]
        inner = [max(0.0, value) for value in self.linear("tokens.move.mix.0", features)]
        return self.linear("tokens.move.mix.2", inner)

    # Backbone: X <- HistorySelfAttn(X; M)

    def states(self, visits: list[Visit]) -> list[Vector]:
        """The state after every visit; the window is cut only where positions are absolute."""
        first = len(visits) - self.config.window if self.config.positions == "absolute" else 0
        kept = range(max(0, first), len(visits))
        states = [self.token(visits, number) for number in kept]
        if not self.config.backbone:
            return states
        for layer in range(self.config.backbone_layers):
            states = self.backbone_block(f"backbone.blocks.{layer}", states)
        return [self.norm("backbone.norm", state) for state in states]

    def backbone_block(self, block: str, states: list[Vector]) -> list[Vector]:
        after = []
        for number, state in enumerate(states):
            of_query = self.norm(f"{block}.attention_norm", state)
            visible = range(max(0, number - self.config.window + 1), number + 1)
            biases = [
                [self.offset_bias(block, head, number - earlier) for earlier in visible]
                for head in range(self.config.heads)
            ]
            of_visits = [states[earlier] for earlier in visible]
            found, _ = self.attend(f"{block}.attention", of_query, of_visits, biases)
            grown = self.norm(f"{block}.feed_forward_norm", added(of_query, found))
            after.append(self.feed_forward(f"{block}.feed_forward", grown))
        return after

    def offset_bias(self, block: str, head: int, offset: int) -> float:
        table = self.weights.get(f"{block}.attention.offset_bias")
        return 0.0 if table is None else table[head][offset]

    # Reader: CCAttn and its blocks, with B_ji = b_t + b_s

    def bias(self, visits: list[Visit], number: int, candidate: int) -> float:
        place, at_us, _ = visits[number]
        age_hours = max(0, visits[-1][1] - at_us) / 3.6e9
        far = distance_km(place, candidate)
        bias = 0.0
        if self.config.temporal_bias:
            bucket = bucket_of(age_hours, TEMPORAL_BIAS_EDGES_HOURS)
            bias += self.weights["reader.temporal_bias.weight"][bucket]
        if self.config.spatial_bias:
            bucket = bucket_of(far, SPATIAL_BIAS_EDGES_KM)
            bias += self.weights["reader.spatial_bias.weight"][bucket]
        return bias

    def with_offsets(self, states: list[Vector]) -> list[Vector]:
        """With relative positions, each state has a vector of the number of visits since."""
        table = self.weights.get("reader.layers.offset")
        if table is None:
            return states
        marks = table[len(table) - len(states) :]
        return [added(state, mark) for state, mark in zip(states, marks, strict=True)]

    def read(self, visits: list[Visit], candidate: int) -> tuple[Vector, list[list[Vector]]]:
        """z of a candidate, and the attention of every layer and head over its visits."""
        window = visits[-self.config.window :]
        states = self.with_offsets(self.states(visits)[-self.config.window :])
        bias = [self.bias(window, number, candidate) for number in range(len(window))]
        reading = self.vector(candidate)
        attentions = []
        for layer in range(self.config.reader_layers):
            block = f"reader.layers.blocks.{layer}"
            biases = [bias] * self.config.heads
            found, attention = self.attend(f"{block}.attention", reading, states, biases)
            attentions.append(attention)
            reading = self.norm(f"{block}.attention_norm", added(reading, found))
            grown = added(reading, self.feed_forward(f"{block}.feed_forward", reading))
            reading = self.norm(f"{block}.feed_forward_norm", grown)
        return reading, attentions

    # Head: r = MLP [z ; e_c ; z * e_c]

    def refine(self, reading: Vector, candidate: int) -> float:
        vector = self.vector(candidate)
        product = [left * right for left, right in zip(reading, vector, strict=True)]
        mixed = self.linear("reader.head.mix", [*reading, *vector, *product])
        return self.linear("reader.head.last", [gelu(value) for value in mixed])[0]

    # Gate: rho = w(u) . [log(1 + cnt), rec, 1[cnt > 0]]; habits and deep layers are ours

    def revisit(self, state: Vector, visits: list[Visit], candidate: int) -> float:
        window = REVISIT_WINDOW
        counted = visits[-window:]
        if candidate not in [place for place, _, _ in counted]:
            return 0.0
        features = paper_features(counted, candidate, window)
        if self.config.revisit_features == "habits":
            known_us = next_moment(visits) if self.config.known_time else None
            features += habits(counted, candidate, known_us)
        inner = [max(0.0, value) for value in self.linear("cheap_terms.revisit.weigh.0", state)]
        gain = dot(self.linear("cheap_terms.revisit.weigh.2", inner), features)
        return gain + self.deep_revisit(state, features, candidate)

    def deep_revisit(self, state: Vector, features: Vector, candidate: int) -> float:
        if not self.config.deep_revisits:
            return 0.0
        parts = {"features": features, "user": state, "place": self.vector(candidate)}
        inner = [0.0] * len(self.weights["cheap_terms.revisit.deep.mix.bias"])
        for name, values in parts.items():
            inner = added(inner, self.linear(f"cheap_terms.revisit.deep.{name}", values))
        mixed = self.linear("cheap_terms.revisit.deep.mix", [gelu(value) for value in inner])
        return self.linear("cheap_terms.revisit.deep.last", [gelu(value) for value in mixed])[0]

    # Distance gate (ours): delta = sum over anchors of w_a(u) [bucket of the distance]

    def anchor(self, name: str, visits: list[Visit]) -> int | None:
        places = [place for place, _, _ in visits[-REVISIT_WINDOW:]]
        if name == "home":
            latest_first = list(dict.fromkeys(reversed(places)))
            return max(latest_first, key=places.count, default=None)
        return places[-1] if places else None

    def distance(self, state: Vector, visits: list[Visit], candidate: int) -> float:
        inner = [max(0.0, value) for value in self.linear("cheap_terms.distance.weigh.0", state)]
        weights = self.linear("cheap_terms.distance.weigh.2", inner)
        edges = DISTANCE_GATE_EDGES_KM
        term = 0.0
        for number, name in enumerate(("last", "home")):
            anchor = self.anchor(name, visits)
            if anchor is not None:
                bucket = bucket_of(distance_km(anchor, candidate), edges)
                term += weights[number * (len(edges) + 1) + bucket]
        return term

    # Score: s = h . e_c + beta_c + gamma r + rho (+ delta)

    def terms(self, visits: list[Visit], candidate: int) -> dict[str, float]:
        states = self.states(visits)
        state = states[-1] if states else [0.0] * self.config.width
        terms = {
            "base": dot(state, self.vector(candidate)),
            "popularity": self.popularity(candidate),
        }
        if self.config.candidate_conditioning:
            reading, _ = self.read(visits, candidate)
            terms["reader"] = self.weights["reader.gamma"] * self.refine(reading, candidate)
        if self.config.revisit_gate:
            terms["revisit"] = self.revisit(state, visits, candidate)
        if self.config.distance_gate:
            terms["distance"] = self.distance(state, visits, candidate)
        return terms

    # The parts that layers share

    def attend(
        self, name: str, of_query: Vector, of_visits: list[Vector], biases: list[Vector]
    ) -> tuple[Vector, list[Vector]]:
        """softmax(Q K^T / sqrt(d_h) + B) V, heads side by side, projected; and the weights.

        Null attention adds a column to the softmax, whose value is zero.
        """
        size = self.config.width // self.config.heads
        query = self.linear(f"{name}.query", of_query)
        keys = [self.linear(f"{name}.key", each) for each in of_visits]
        values = [self.linear(f"{name}.value", each) for each in of_visits]
        found, attention = [], []
        for head in range(self.config.heads):
            part = slice(head * size, (head + 1) * size)
            logits = [
                dot(query[part], key[part]) / math.sqrt(size) + bias
                for key, bias in zip(keys, biases[head], strict=True)
            ]
            weights = [math.exp(logit) for logit in logits]
            null = self.weights.get(f"{name}.null")
            whole = sum(weights) + (0.0 if null is None else math.exp(null))
            weights = [weight / whole for weight in weights]
            attention.append(weights)
            found += [
                sum(weight * value[part][i] for weight, value in zip(weights, values, strict=True))
                for i in range(size)
            ]
        return self.linear(f"{name}.mix", found), attention

    def feed_forward(self, name: str, vector: Vector) -> Vector:
        inner = [max(0.0, value) for value in self.linear(f"{name}.widen", vector)]
        return added(vector, self.linear(f"{name}.narrow", inner))

    def norm(self, name: str, vector: Vector) -> Vector:
        mean = sum(vector) / len(vector)
        variance = sum((value - mean) ** 2 for value in vector) / len(vector)
        gain, shift = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return [
            (value - mean) / math.sqrt(variance + 1e-5) * g + s
            for value, g, s in zip(vector, gain, shift, strict=True)
        ]

    def linear(self, name: str, vector: Vector) -> Vector:
        weight = self.weights[f"{name}.weight"]
        bias = self.weights.get(f"{name}.bias", [0.0] * len(weight))
        return [dot(row, vector) + shift for row, shift in zip(weight, bias, strict=True)]


def paper_features(visits: list[Visit], candidate: int, window: int) -> Vector:
    places = [place for place, _, _ in visits]
    padded = [-1] * (window - len(places)) + places
    count = padded.count(candidate)
    slots = [slot for slot, place in enumerate(padded, start=1) if place == candidate]
    return [math.log1p(count), max(slots, default=0) / window, float(count > 0)]


def gelu(value: float) -> float:
    return value * (1 + math.erf(value / math.sqrt(2))) / 2


def dot(left: Vector, right: Vector) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def added(left: Vector, right: Vector) -> Vector:
    return [a + b for a, b in zip(left, right, strict=True)]


def bucket_of(value: float, edges: tuple[float, ...]) -> int:
    return sum(value >= edge for edge in edges)
