# SPDX-License-Identifier: Apache-2.0
"""Predicts a folder of rows with Ray Data, on the OpenCL devices of all nodes of a cluster.

On each node, with the number of its devices (`cltool devices` lists them):

    ray start --head --resources='{"opencl": 2}'
    ray start --address=HEAD:6379 --resources='{"opencl": 1}'

(Newer versions of Ray want a token on each: `ray get-auth-token --generate`.) Then, on one of them,
with folders that all nodes see:

    RAY_ADDRESS=auto python examples/python/ray_predict.py digits.onnx rows/ results/

rows/ has .npy files, whose rows are those of the model's only input, or .parquet files with a
column for each input. results/ gets .parquet files with the columns of the rows and one for each
output. A worker is one actor with one device and one session. Ray gives custom resources no
numbers, so workers of a node share its devices by locks. $CLG_DEVICE of `ray start` limits a
node's devices: "gpu", "0:0,0:1", "cpu/0".
"""

import argparse
import fcntl
import os
import pathlib
import tempfile

import numpy as np
import ray

import clgraph


def claim_device():
    """Returns the selector of a device of this node that no other worker has, and its lock.

    The lock ends with the process, whatever ends that.
    """
    wanted = os.environ.get("CLG_DEVICE", "all")
    selectors = (
        [d.selector for d in clgraph.select("all")] if wanted == "all" else wanted.split(",")
    )
    folder = pathlib.Path(tempfile.gettempdir()) / f"clgraph-ray-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    for selector in selectors:
        lock = open(folder / selector.replace("/", "_").replace(":", "_"), "a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return selector, lock
        except BlockingIOError:
            lock.close()
    raise RuntimeError(
        f"all devices of this node ({', '.join(selectors)}) are taken: "
        "its resource opencl is larger than their number"
    )


class Predict:
    """A worker: computes the model's outputs for batches of rows."""

    def __init__(self, model):
        selector, self.lock = claim_device()
        self.session = clgraph.InferenceSession(model, device=selector)
        self.inputs = [i.name for i in self.session.get_inputs()]
        self.outputs = [o.name for o in self.session.get_outputs()]
        node = ray.get_runtime_context().get_node_id()
        print(f"node {node[:8]}: {selector}, {self.session.device.name}")

    def __call__(self, batch):
        if len(self.inputs) == 1 and self.inputs[0] not in batch:  # rows of .npy files
            feeds = {self.inputs[0]: batch["data"]}
        else:
            feeds = {name: batch[name] for name in self.inputs}
        results = self.session.run(None, {n: np.ascontiguousarray(a) for n, a in feeds.items()})
        return {**batch, **dict(zip(self.outputs, results))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("rows", type=pathlib.Path)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--batch", type=int, default=64, help="rows of a run (64)")
    options = parser.parse_args()

    ray.init()
    n_devices = int(ray.cluster_resources().get("opencl", 0))
    if n_devices == 0:
        parser.error("no node has the resource opencl: see the top of this program")
    # Rows keep their order, so that results can be compared with those of one process.
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    names = [str(p.absolute()) for p in sorted(options.rows.iterdir())]
    if all(name.endswith(".npy") for name in names):
        rows = ray.data.read_numpy(names)
    else:
        rows = ray.data.read_parquet(names)
    model = options.model.read_bytes()  # nodes need not see the file
    results = rows.map_batches(
        Predict,
        fn_constructor_args=(model,),
        batch_size=options.batch,
        concurrency=n_devices,
        num_cpus=0,
        resources={"opencl": 1},
    )
    results.write_parquet(str(options.results.absolute()))
    n_rows = ray.data.read_parquet(str(options.results.absolute())).count()
    print(f"{n_rows} rows on {n_devices} devices")


if __name__ == "__main__":
    main()
