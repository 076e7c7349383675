# SPDX-License-Identifier: Apache-2.0
"""Prints as JSON the scalars that the stock TensorBoard reader finds in a folder. Exit code 77: TensorBoard is not installed."""

import json
import sys

try:
    from tensorboard.backend.event_processing import event_accumulator, plugin_event_accumulator
except ImportError:
    print("skip: TensorBoard is not importable")
    sys.exit(77)

old = event_accumulator.EventAccumulator(sys.argv[1], purge_orphaned_data=True)
old.Reload()
new = plugin_event_accumulator.EventAccumulator(sys.argv[1])
new.Reload()
scalars = {tag: [[e.step, e.value] for e in old.Scalars(tag)] for tag in old.Tags()["scalars"]}
texts = {}
for tag in new.Tags()["tensors"]:
    plugin = new.SummaryMetadata(tag).plugin_data.plugin_name
    for event in new.Tensors(tag):
        if plugin == "scalars":
            values = list(event.tensor_proto.float_val) or [
                __import__("struct").unpack("<f", event.tensor_proto.tensor_content)[0]
            ]
            assert [event.step, values[0]] in scalars[tag], (tag, event.step)
        elif plugin == "custom_scalars":
            from tensorboard.plugins.custom_scalar import layout_pb2

            layout = layout_pb2.Layout.FromString(event.tensor_proto.string_val[0])
            texts[tag] = [chart.title for category in layout.category for chart in category.chart]
        else:
            texts[tag] = event.tensor_proto.string_val[0].decode()
print(json.dumps({"scalars": scalars, "texts": texts}, sort_keys=True))
