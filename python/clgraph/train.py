# SPDX-License-Identifier: Apache-2.0
"""Training of models by gradient methods."""

import ctypes
import dataclasses
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _capi as c
from ._interrupt import guarded, on_main_thread, waiting
from ._library import Handle, check, encode_name, init, lib, names_array, string
from .device import KERNELS, enum_value, shared_context
from .model import Model, new_cancel
from .session import InferenceSession
from .value import Value, address

LOSSES = {
    "output": c.CLG_LOSS_OUTPUT,
    "cross-entropy": c.CLG_LOSS_CROSS_ENTROPY,
    "nll": c.CLG_LOSS_NLL,
    "bce-with-logits": c.CLG_LOSS_BCE_WITH_LOGITS,
    "mse": c.CLG_LOSS_MSE,
    "l1": c.CLG_LOSS_L1,
    "huber": c.CLG_LOSS_HUBER,
}
OPTIMIZERS = {
    "sgd": c.CLG_OPTIMIZER_SGD,
    "adam": c.CLG_OPTIMIZER_ADAM,
    "adamw": c.CLG_OPTIMIZER_ADAMW,
    "adagrad": c.CLG_OPTIMIZER_ADAGRAD,
    "rmsprop": c.CLG_OPTIMIZER_RMSPROP,
}
SCHEDULES = {
    "constant": c.CLG_SCHEDULE_CONSTANT,
    "step": c.CLG_SCHEDULE_STEP,
    "exponential": c.CLG_SCHEDULE_EXPONENTIAL,
    "linear": c.CLG_SCHEDULE_LINEAR,
    "cosine": c.CLG_SCHEDULE_COSINE,
}
FORMS = {
    "model": c.CLG_FORM_MODEL,
    "prediction": c.CLG_FORM_PREDICTION,
    "training": c.CLG_FORM_TRAINING,
}
ON_NAN = {"stop": c.CLG_ON_NAN_STOP, "skip": c.CLG_ON_NAN_SKIP}


@dataclasses.dataclass(frozen=True)
class StepStats:
    """What a step did: the mean loss of its batches, its learning rate, with clip_norm the norm of
    the gradients before clipping, else NaN, with step_metrics what Measures counts, and how many
    steps so far were skipped."""

    step: int
    loss: float
    rate: float
    gradient_norm: float
    right: int = 0
    counted: int = 0
    skipped: int = 0


@dataclasses.dataclass(frozen=True)
class Measures:
    """The loss of a batch, and of losses of classes the number of targets whose class has the
    largest output, and of those that count: all but ignore_index. Otherwise these are 0."""

    loss: float
    right: int
    counted: int

    @property
    def accuracy(self) -> float:
        """The share of right predictions, NaN where nothing counts."""
        return self.right / self.counted if self.counted else float("nan")


class Trainer:
    """Changes the float initializers of a model so that a loss becomes smaller.

    model: a path, bytes, an onnx.ModelProto or a clgraph.Model; it is not changed.
    loss: "cross-entropy" and "nll" (targets are class numbers), "bce-with-logits", "mse", "l1",
        "huber", or "output": the model computes its loss itself. output: of which value; by default
        of the only output. target: the name of the input for the targets. ignore_index,
        label_smoothing, delta, class_weights: see clg_loss_options.
    optimizer: "sgd", "adam", "adamw", "adagrad" or "rmsprop", with PyTorch's formulas and options
        (weight_decay, momentum, dampening, nesterov, betas, alpha, centered, eps, lr_decay).
    lr, schedule: the learning rate, "constant", or by the number of the step: "step" (times gamma
        every `period` steps), "exponential", "linear" or "cosine" (to last_lr at total_steps); each
        after warmup_steps.
    train, freeze: names of initializers, with "*" and "?".
    clip_value, clip_norm: limits of the gradients, 0: none. accumulate: batches of a step. parts:
        equal parts of a batch, which are given in place of it; see check_parts.
    batchnorm: in which form BatchNormalization computes in steps: as in the "model", by its
        running statistics ("prediction"), or by those of the batch, which move the running ones
        ("training"). population_variance: these are of the batch, not of the sample as PyTorch's.
    dropout: whether Dropout drops in steps: as in the "model", never ("prediction"), or always
        ("training"); what is dropped follows from `seed` and the step.
    step_metrics: steps count right predictions too, of losses of classes. on_nan: "stop" raises
        where the loss is not finite, and "skip" skips the step; the parameters do not change.

    Equal inputs give equal bits. One call at a time: others raise Busy.
    """

    def __init__(
        self,
        model: Any,
        device: Any = None,
        *,
        loss: str = "cross-entropy",
        output: Optional[str] = None,
        target: str = "target",
        ignore_index: Optional[int] = None,
        label_smoothing: float = 0.0,
        class_weights: Optional[Sequence[float]] = None,
        delta: float = 1.0,
        optimizer: str = "sgd",
        lr: float = 1e-3,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        dampening: float = 0.0,
        nesterov: bool = False,
        betas: Tuple[float, float] = (0.9, 0.999),
        alpha: float = 0.99,
        centered: bool = False,
        eps: Optional[float] = None,
        lr_decay: float = 0.0,
        schedule: str = "constant",
        last_lr: float = 0.0,
        gamma: float = 0.1,
        period: int = 1,
        total_steps: int = 0,
        warmup_steps: int = 0,
        train: Sequence[str] = (),
        freeze: Sequence[str] = (),
        clip_value: float = 0.0,
        clip_norm: float = 0.0,
        accumulate: int = 1,
        parts: int = 1,
        batchnorm: str = "model",
        population_variance: bool = False,
        dropout: str = "model",
        seed: int = 0,
        step_metrics: bool = False,
        on_nan: str = "stop",
        kernels: str = "auto",
    ):
        self.model = model if isinstance(model, Model) else Model(model)
        weights = None if class_weights is None else (ctypes.c_float * len(class_weights))()
        if weights is not None:
            weights[:] = class_weights
        loss_options = init(
            c.clg_loss_options,
            kind=enum_value(LOSSES, loss, "loss"),
            output=None if output is None else encode_name(output, "output"),
            target=encode_name(target, "target"),
            has_ignore_index=ignore_index is not None,
            ignore_index=ignore_index or 0,
            label_smoothing=label_smoothing,
            delta=delta,
            weights=None if weights is None else ctypes.addressof(weights),
            n_weights=0 if weights is None else len(weights),
        )
        optimizer_options = init(
            c.clg_optimizer_options,
            kind=enum_value(OPTIMIZERS, optimizer, "optimizer"),
            weight_decay=weight_decay, momentum=momentum, dampening=dampening,
            nesterov=bool(nesterov), beta1=betas[0], beta2=betas[1], alpha=alpha,
            centered=bool(centered), epsilon=-1.0 if eps is None else eps, rate_decay=lr_decay,
        )  # fmt: skip
        schedule_options = init(
            c.clg_schedule_options,
            kind=enum_value(SCHEDULES, schedule, "schedule"),
            rate=lr, last_rate=last_lr, gamma=gamma, period=period, total_steps=total_steps,
            warmup_steps=warmup_steps,
        )  # fmt: skip
        cancel = new_cancel()
        session = init(
            c.clg_session_options,
            kernels=enum_value(KERNELS, kernels, "kernels"),
            cancel=cancel.pointer,
        )
        trained, n_trained = names_array(train, "the name of an initializer")
        frozen, n_frozen = names_array(freeze, "the name of an initializer")
        options = init(
            c.clg_train_options,
            loss=ctypes.addressof(loss_options),
            optimizer=ctypes.addressof(optimizer_options),
            schedule=ctypes.addressof(schedule_options),
            train=ctypes.addressof(trained) if trained else None,
            n_train=n_trained,
            freeze=ctypes.addressof(frozen) if frozen else None,
            n_freeze=n_frozen,
            clip_value=clip_value,
            clip_norm=clip_norm,
            accumulate=accumulate,
            parts=parts,
            session=ctypes.addressof(session),
            batchnorm=enum_value(FORMS, batchnorm, "batchnorm"),
            population_variance=bool(population_variance),
            dropout=enum_value(FORMS, dropout, "dropout"),
            seed=seed,
            step_metrics=bool(step_metrics),
            on_nan=enum_value(ON_NAN, on_nan, "on_nan"),
        )
        self.context = shared_context(device)
        model_pointer, context_pointer = self.model._handle.pointer, self.context._handle.pointer

        def work() -> Handle:
            out = ctypes.c_void_p()
            check(
                lib.clg_trainer_create(
                    context_pointer, model_pointer, ctypes.byref(options), ctypes.byref(out)
                )
            )
            return Handle(out.value, lib.clg_trainer_free)

        self._cancel = cancel
        self._handle = waiting(work, lambda: lib.clg_cancel_trigger(cancel.pointer))
        # Arrays over which the inputs are, {input: (array, address, shape, dtype)}: a training that
        # fills the same arrays for each batch sets each input once.
        self._arrays: Dict[str, Tuple[np.ndarray, int, Tuple[int, ...], np.dtype]] = {}

    def _set(self, feed: Mapping[str, Any]) -> None:
        arrays = self._arrays
        for name, data in feed.items():
            seen = arrays.get(name)
            if (
                seen is not None
                and seen[0] is data
                and seen[1] == address(data)
                and seen[2] == data.shape
                and seen[3] == data.dtype
                and data.flags.c_contiguous
            ):
                continue
            arrays.pop(name, None)
            value = data if isinstance(data, Value) else Value(data)
            check(
                lib.clg_trainer_set_input(
                    self._handle.pointer, encode_name(name, "the name of an input"), value.pointer
                )
            )
            # Of others the value has a copy.
            if (
                type(data) is np.ndarray
                and data.flags.c_contiguous
                and data.dtype.isnative
                and data.dtype.kind in "biufc"
            ):
                arrays[name] = (data, address(data), data.shape, data.dtype)

    def _run(self, function: Any, *arguments: Any) -> None:
        """Calls a function of the trainer; Ctrl-C ends it."""
        arguments = (self._handle.pointer, *arguments)
        if on_main_thread():
            check(guarded(function, arguments, lib.clg_trainer_cancel))
        else:
            check(function(*arguments))

    def step(self, feed: Mapping[str, Any]) -> StepStats:
        """Computes the gradients of a batch, {input: array}, and updates the parameters.

        With accumulate=N and parts=M, the first N * M - 1 of N * M calls only add gradients; `step`
        does not change.
        """
        self._set(feed)
        stats = init(c.clg_train_stats)
        self._run(lib.clg_trainer_step, ctypes.byref(stats))
        return StepStats(
            stats.step,
            stats.loss,
            stats.rate,
            stats.gradient_norm,
            stats.n_right,
            stats.n_counted,
            stats.skipped,
        )

    def check_parts(self) -> None:
        """Raises Unsupported where the gradient of a batch is not the mean of those of its
        parts, by the loss or because rows depend on each other."""
        check(lib.clg_trainer_check_parts(self._handle.pointer))

    def evaluate(self, feed: Mapping[str, Any]) -> float:
        """Returns the loss of a batch; nothing changes."""
        self._set(feed)
        loss = ctypes.c_double()
        self._run(lib.clg_trainer_evaluate, ctypes.byref(loss))
        return loss.value

    def measure(self, feed: Mapping[str, Any]) -> Measures:
        """As evaluate, with the number of right predictions."""
        self._set(feed)
        measures = init(c.clg_measures)
        self._run(lib.clg_trainer_measure, ctypes.byref(measures))
        return Measures(measures.loss, measures.n_right, measures.n_counted)

    @property
    def parameters(self) -> List[str]:
        """The names of the initializers that are trained."""
        pointer = self._handle.pointer
        return [
            string(c.clg_port.from_address(lib.clg_trainer_parameter(pointer, i)).name)
            for i in range(lib.clg_trainer_n_parameters(pointer))
        ]

    def _get(self, function: Any, name: str) -> np.ndarray:
        out = ctypes.c_void_p()
        encoded = encode_name(name, "the name of a parameter")
        check(function(self._handle.pointer, encoded, ctypes.byref(out)))
        return Value._own(out.value).numpy()

    def get_parameter(self, name: str) -> np.ndarray:
        """Returns a copy of a parameter as it is now."""
        return self._get(lib.clg_trainer_get_parameter, name)

    def get_gradient(self, name: str) -> np.ndarray:
        """Returns a parameter's gradient in the last step, summed over its batches, not clipped."""
        return self._get(lib.clg_trainer_get_gradient, name)

    def set_parameter(self, name: str, data: Any) -> None:
        """Changes a parameter to an array of its dtype and shape."""
        value = data if isinstance(data, Value) else Value(data)
        encoded = encode_name(name, "the name of a parameter")
        check(lib.clg_trainer_set_parameter(self._handle.pointer, encoded, value.pointer))

    def save(self, path: Union[str, os.PathLike]) -> None:
        """Saves parameters, the optimizer's states and the number of steps as a .npz file.

        `load` of a trainer with the same model and options goes on with the same bits.
        """
        pointer, encoded = self._handle.pointer, os.fsencode(path)
        waiting(lambda: check(lib.clg_trainer_save(pointer, encoded)))

    def load(self, path: Union[str, os.PathLike]) -> None:
        """Goes on from a file of `save`; other models or options raise InvalidArgument."""
        pointer, encoded = self._handle.pointer, os.fsencode(path)
        waiting(lambda: check(lib.clg_trainer_load(pointer, encoded)))

    def session(self) -> InferenceSession:
        """Returns a session that predicts with the parameters as they are when it runs.

        They are not copied. It is for one thread at a time, and not during a step.
        """
        pointer = self._handle.pointer

        def work() -> Handle:
            out = ctypes.c_void_p()
            check(lib.clg_trainer_session(pointer, ctypes.byref(out)))
            return Handle(out.value, lib.clg_session_free)

        return InferenceSession._of_trainer(self.model, self.context, waiting(work))

    def trained_model(self) -> Model:
        """Returns the model with the parameters as they are now, to save or to run."""
        out = ctypes.c_void_p()
        check(lib.clg_trainer_model(self._handle.pointer, ctypes.byref(out)))
        return Model._own(Handle(out.value, lib.clg_model_free))
