# SPDX-License-Identifier: Apache-2.0
"""The cases of the torchrun contract. Each is one command line, which torchrun and `convoy launch` get word for word.

In commands and environments {probe} is probe.py in {sources}, {native} is the compiled probe.c, {folder} is a folder of the case,
{logs} is a new folder in it, and {port} is a free port.
"""

from dataclasses import dataclass, field


@dataclass
class Case:
    name: str
    command: list  # flags, program and its words
    environment: dict = field(default_factory=dict)  # None: the variable is removed
    signals: list = field(
        default_factory=list
    )  # signals for the launcher, sent when all ranks have written their record
    ranks: int = 2  # number of ranks that write a record, for `signals`
    console: bool = False  # true: compares the lines of the ranks on the console
    # Intended differences of Convoy in this case alone: {"exit": (value, "why")}.
    intended: dict = field(default_factory=dict)


FIRST_CAUSE = "the code of the first rank that failed, where torchrun ends with 1 whatever happened"
STOPPED = (
    "128 + the signal that ended the ranks, as a shell would have it, where torchrun ends with 1"
)
ENDED_WELL = "all ranks answered the stop with exit code 0: the job's code is theirs, where torchrun ends with 1"
TWO = ["--nproc-per-node", "2"]

CASES = [
    # Programs.
    Case("script", TWO + ["{probe}", "one", "--two", "three four"], console=True),
    Case("script_of_one_rank", ["{probe}"]),
    Case("native", TWO + ["--no-python", "{native}", "one", "--two", "three four"], console=True),
    Case("module", TWO + ["-m", "probe", "--flag"], {"PYTHONPATH": "{sources}"}),
    Case("module_long", TWO + ["--module", "probe"], {"PYTHONPATH": "{sources}"}),
    Case("run_path", TWO + ["--run-path", "{probe}", "word"]),
    Case(
        "flags_after_the_program_are_its_own",
        TWO + ["{probe}", "--nproc-per-node", "9", "-m", "--", "-t", "3"],
    ),
    Case("separator", TWO + ["--", "{probe}", "--", "x"]),
    Case(
        "local_rank_macro",
        TWO + ["{probe}", "--device=${local_rank}", "${local_rank}${local_rank}"],
    ),
    Case("python_exec", TWO + ["{probe}"], {"PYTHON_EXEC": "{folder}/python"}),
    # Both spellings of flags, with joined and with separate values.
    Case("underscores", ["--nproc_per_node=2", "--max_restarts=1", "--rdzv_id=run_7", "{probe}"]),
    Case("dashes", ["--nproc-per-node=2", "--max-restarts", "1", "--rdzv-id", "run_7", "{probe}"]),
    Case("nnodes_one", ["--nnodes", "1", *TWO, "{probe}"]),
    Case("nnodes_range", ["--nnodes=1:1", *TWO, "{probe}"]),
    Case("standalone", ["--standalone", *TWO, "{probe}"]),
    Case(
        "static_with_master",
        TWO + ["--master-addr", "127.0.0.1", "--master-port", "{port}", "{probe}"],
    ),
    Case(
        "static_with_endpoint",
        TWO
        + [
            "--rdzv-backend",
            "static",
            "--rdzv-endpoint",
            "127.0.0.1:{port}",
            "--node-rank",
            "0",
            "{probe}",
        ],
    ),
    Case(
        "c10d_one_node",
        TWO
        + [
            "--rdzv-backend",
            "c10d",
            "--rdzv-endpoint",
            "localhost:0",
            "--rdzv-id",
            "job",
            "{probe}",
        ],
    ),
    Case("role", TWO + ["--role", "trainer", "{probe}"]),
    Case(
        "accepted_without_effect",
        TWO
        + [
            "--monitor-interval",
            "0.5",
            "--start-method",
            "spawn",
            "--event-log-handler",
            "null",
            "{probe}",
        ],
    ),
    Case("signals_to_handle", TWO + ["--signals-to-handle", "SIGTERM,SIGINT", "{probe}"]),
    # PET_FLAG is the variable for a flag; the command line overrides it.
    Case(
        "pet_kubeflow",
        ["{probe}"],
        {
            "PET_NNODES": "1",
            "PET_NPROC_PER_NODE": "2",
            "PET_NODE_RANK": "0",
            "PET_MASTER_ADDR": "127.0.0.1",
            "PET_MASTER_PORT": "{port}",
        },
    ),
    Case("pet_below_flag", ["--nproc-per-node", "2", "{probe}"], {"PET_NPROC_PER_NODE": "3"}),
    Case(
        "pet_restarts_role_id",
        TWO + ["{probe}"],
        {"PET_MAX_RESTARTS": "2", "PET_ROLE": "actor", "PET_RDZV_ID": "from_pet"},
    ),
    Case("pet_module", TWO + ["probe"], {"PET_MODULE": "1", "PYTHONPATH": "{sources}"}),
    Case("pet_no_python", TWO + ["{native}"], {"PET_NO_PYTHON": "1"}),
    Case("pet_run_path", TWO + ["{probe}"], {"PET_RUN_PATH": "1"}),
    Case("pet_switched_off", TWO + ["{probe}"], {"PET_STANDALONE": "0", "PET_NO_PYTHON": "0"}),
    Case("pet_standalone", TWO + ["{probe}"], {"PET_STANDALONE": "1"}),
    Case(
        "pet_endpoint",
        TWO + ["{probe}"],
        {"PET_RDZV_BACKEND": "static", "PET_RDZV_ENDPOINT": "127.0.0.1:{port}"},
    ),
    Case(
        "pet_logs",
        TWO + ["{probe}"],
        {"PET_LOG_DIR": "{logs}", "PET_TEE": "1", "PET_REDIRECTS": "2"},
        console=True,
    ),
    Case(
        "pet_filter",
        TWO + ["{probe}"],
        {"PET_LOCAL_RANKS_FILTER": "1", "PET_TEE": "3", "PET_LOG_DIR": "{logs}"},
        console=True,
    ),
    Case(
        "pet_duplicates",
        TWO + ["{probe}"],
        {
            "PET_DUPLICATE_STDOUT_FILTERS": "of 1",
            "PET_DUPLICATE_STDERR_FILTERS": "of 0",
            "PET_TEE": "3",
            "PET_LOG_DIR": "{logs}",
        },
    ),
    Case(
        "pet_without_effect",
        TWO + ["{probe}"],
        {"PET_MONITOR_INTERVAL": "1", "PET_START_METHOD": "fork", "PET_EVENT_LOG_HANDLER": "null"},
    ),
    Case("pet_rdzv_conf", TWO + ["{probe}"], {"PET_RDZV_CONF": "timeout=60"}),
    Case("pet_local_addr", TWO + ["{probe}"], {"PET_LOCAL_ADDR": "127.0.0.1"}),
    Case("pet_signals_to_handle", TWO + ["{probe}"], {"PET_SIGNALS_TO_HANDLE": "SIGTERM"}),
    Case(
        "pet_virtual_local_rank",
        TWO + ["{probe}"],
        {"PET_VIRTUAL_LOCAL_RANK": "1", "CUDA_VISIBLE_DEVICES": "4,5"},
    ),
    # Log files.
    Case("log_dir_alone", TWO + ["--log-dir", "{logs}", "{probe}"], console=True),
    Case("redirect_none", TWO + ["--log-dir", "{logs}", "-r", "0", "{probe}"], console=True),
    Case("redirect_out", TWO + ["--log-dir", "{logs}", "-r", "1", "{probe}"], console=True),
    Case("redirect_err", TWO + ["--log-dir", "{logs}", "-r", "2", "{probe}"], console=True),
    Case(
        "redirect_both", TWO + ["--log-dir", "{logs}", "--redirects", "3", "{probe}"], console=True
    ),
    Case(
        "redirect_by_rank", TWO + ["--log-dir", "{logs}", "-r", "0:1,1:2", "{probe}"], console=True
    ),
    Case(
        "redirect_of_one_rank", TWO + ["--log-dir", "{logs}", "-r", "1:3", "{probe}"], console=True
    ),
    Case("tee_out", TWO + ["--log-dir", "{logs}", "-t", "1", "{probe}"], console=True),
    Case("tee_both", TWO + ["--log-dir", "{logs}", "--tee", "3", "{probe}"], console=True),
    Case("tee_by_rank", TWO + ["--log-dir", "{logs}", "-t", "0:3", "{probe}"], console=True),
    Case(
        "tee_and_redirect",
        TWO + ["--log-dir", "{logs}", "-r", "3", "-t", "1", "{probe}"],
        console=True,
    ),
    Case(
        "joined_short_flags", TWO + ["--log-dir", "{logs}", "-r3", "-t0:1", "{probe}"], console=True
    ),
    Case(
        "filter_console",
        TWO + ["--log-dir", "{logs}", "-t", "3", "--local-ranks-filter", "0", "{probe}"],
        console=True,
    ),
    Case(
        "filter_console_without_files", TWO + ["--local-ranks-filter", "1", "{probe}"], console=True
    ),
    Case(
        "duplicate_filters",
        TWO
        + [
            "--log-dir",
            "{logs}",
            "-t",
            "3",
            "--duplicate-stdout-filters",
            "of 0,nothing",
            "--duplicate-stderr-filters",
            "err",
            "{probe}",
        ],
    ),
    Case(
        "prefix_template",
        TWO + ["--log-dir", "{logs}", "-t", "1", "--role", "actor", "{probe}"],
        {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "<${role_name}/${local_rank}/${rank}> "},
        console=True,
        intended={
            "stderr": (
                ["<actor/0/0> probe: err of 0", "<actor/1/1> probe: err of 1"],
                "every line of the console says whose it is, where torchrun leads only those of -t",
            )
        },
    ),
    # Values of OMP_NUM_THREADS.
    Case("threads_of_one_rank", ["{probe}"], {"OMP_NUM_THREADS": None}),
    Case("threads_of_two", TWO + ["{probe}"], {"OMP_NUM_THREADS": None}),
    Case("threads_given", TWO + ["{probe}"], {"OMP_NUM_THREADS": "3"}),
    # Devices.
    Case(
        "virtual_local_rank",
        TWO + ["--virtual-local-rank", "{probe}"],
        {"CUDA_VISIBLE_DEVICES": "4,5"},
    ),
    Case("visible_devices", TWO + ["{probe}"], {"CUDA_VISIBLE_DEVICES": "4,5"}),
    # Ends of jobs.
    Case("end_3", TWO + ["{probe}", "end", "3"], intended={"exit": (3, FIRST_CAUSE)}),
    Case(
        "end_3_native",
        TWO + ["--no-python", "{native}", "end", "3"],
        intended={"exit": (3, FIRST_CAUSE)},
    ),
    Case(
        "segmentation_fault",
        TWO + ["{probe}", "signal", "11"],
        intended={"exit": (139, FIRST_CAUSE)},
    ),
    Case(
        "killed",
        TWO + ["--no-python", "{native}", "signal", "9"],
        intended={"exit": (137, FIRST_CAUSE)},
    ),
    Case("error_file", TWO + ["--log-dir", "{logs}", "{probe}", "error-file"]),
    Case(
        "restart_then_success",
        TWO
        + ["--max-restarts", "2", "--log-dir", "{logs}", "-r", "3", "{probe}", "fail-until", "1"],
    ),
    Case(
        "restarts_used_up",
        TWO + ["--max-restarts", "1", "{probe}", "fail-until", "9"],
        intended={"exit": (5, FIRST_CAUSE)},
    ),
    Case(
        "term_to_the_launcher",
        TWO + ["{probe}", "wait"],
        signals=["TERM"],
        intended={"exit": (0, ENDED_WELL)},
    ),
    Case(
        "int_to_the_launcher",
        TWO + ["{probe}", "wait"],
        signals=["INT"],
        intended={"exit": (0, ENDED_WELL)},
    ),
    Case(
        "hup_to_the_launcher",
        TWO + ["{probe}", "wait"],
        signals=["HUP"],
        intended={"exit": (0, ENDED_WELL)},
    ),
    Case(
        "term_where_ranks_die_of_it",
        TWO + ["{probe}", "sleep"],
        signals=["TERM"],
        intended={"exit": (143, STOPPED)},
    ),
    # Wrong command lines, which both launchers refuse, with different exit codes.
    *[
        Case(name, command, intended={"exit": (2, "wrong usage is always 2")})
        for name, command in {
            "wrong_value_nproc": ["--nproc-per-node", "many", "{probe}"],
            "wrong_value_nnodes": ["--nnodes", "2:1", "{probe}"],
            "wrong_flag": ["--no-such-flag", "{probe}"],
            "no_program": TWO,
            "module_without_python": TWO + ["--no-python", "-m", "probe"],
            "wrong_log_specs": TWO + ["--logs-specs", "nowhere", "{probe}"],
            "wrong_redirects": TWO + ["-r", "7", "{probe}"],
            "wrong_filter": TWO + ["--local-ranks-filter", "a", "{probe}"],
            "negative_restarts": TWO + ["--max-restarts", "-1", "{probe}"],
            "missing_program": TWO + ["--no-python", "/nowhere/program"],
        }.items()
    ],
]
