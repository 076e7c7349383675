# SPDX-License-Identifier: Apache-2.0
"""Prints as JSON the data that TensorBoard's HParams page gets for a folder from its multiplexer, data provider and plugin. Exit code
77: TensorBoard is not installed."""

import json
import sys

try:
    from tensorboard import context
    from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
    from tensorboard.plugins import base_plugin
    from tensorboard.plugins.hparams import (
        api_pb2,
        backend_context,
        get_experiment,
        list_session_groups,
    )
except ImportError:
    print("skip: TensorBoard is not importable")
    sys.exit(77)

multiplexer = plugin_event_multiplexer.EventMultiplexer(tensor_size_guidance={"scalars": 100})
multiplexer.AddRunsFromDirectory(sys.argv[1])
multiplexer.Reload()
provider = data_provider.MultiplexerDataProvider(multiplexer, sys.argv[1])
backend = backend_context.Context(base_plugin.TBContext(data_provider=provider))
request = context.RequestContext()
experiment = get_experiment.Handler(request, backend, "", api_pb2.GetExperimentRequest()).run()
wanted = api_pb2.ListSessionGroupsRequest(
    start_index=0,
    slice_size=100000,
    aggregation_type=api_pb2.AGGREGATION_AVG,
    allowed_statuses=[
        api_pb2.STATUS_UNKNOWN,
        api_pb2.STATUS_SUCCESS,
        api_pb2.STATUS_FAILURE,
        api_pb2.STATUS_RUNNING,
    ],
    col_params=[api_pb2.ColParams(hparam=info.name) for info in experiment.hparam_infos],
)
groups = list_session_groups.Handler(request, backend, "", wanted).run()


def plain(value):
    return getattr(value, value.WhichOneof("kind"))


print(
    json.dumps(
        {
            "parameters": {
                info.name: {
                    "type": api_pb2.DataType.Name(info.type),
                    "values": [plain(value) for value in info.domain_discrete.values],
                }
                for info in experiment.hparam_infos
            },
            "metrics": [info.name.tag for info in experiment.metric_infos],
            "groups": [
                {
                    "name": group.name,
                    "parameters": {name: plain(value) for name, value in group.hparams.items()},
                    "sessions": [
                        {
                            "run": session.name,
                            "status": api_pb2.Status.Name(session.status),
                            "metrics": {
                                metric.name.tag: metric.value for metric in session.metric_values
                            },
                        }
                        for session in group.sessions
                    ],
                }
                for group in groups.session_groups
            ],
        },
        sort_keys=True,
    )
)
