# When each entry runs, and beside how many others. ctest reads this itself; ./run test starts it
# with four slots a core.

# Entries that compute, with their seconds of processor time: three slots each, so that two cores
# get two of them and two that wait. The longest begin first.
set(computing
  docs:110 sharing:95 random_kills_many:90 resume_combinations:80 parity:80 recipes:75
  random_kills:40 resume_0:55 resume_1:55 resume_2:55 resume_3:55 sharing_combinations:60
  installed_examples:60 lint:50 monitor_training:45 kernels_sim:45 installed_library:45
  kernels_aten_long:45 kernels_sim_long:40 kernels_ptx_long:80 profile_program:40 package:55
  parity_families:40 generation:33 guides:40 kernels_aten:30 parallel:30 sft_play:25 library:25
  faultfs:22 shared_rows:20 sweep_program:24 comm:20 sweep_ptxas:9 sweep_ptxas_others:10
  pipeline:15 sweep:15 memory:25 tensorboard:15 serve_openai:40 sweep_cuda:12 devices:12 kernels_ptx:10 kernels_cuda:10
  kernels_ptxas:20 kernels_ptxas_others:28 kernels:10 rows:9 page_browser:15 reports_program:40)
# Entries that wait most of the time, with their seconds: one slot.
set(waiting
  slurm:111 hub_program:91 hub_push:60 launch_random_kills_many:70 hosts_doctor:62 sweep_nodes:50 row_ledger_hosts:44 launch_signals:42
  launch:35 hosts:34 launch_failure_modes:28 silent_peers:20 launch_random_kills:16 monitor_faults:15 mpi:12 row_ledger_postgres:12
  row_ledger:12 jobs_postgres:10 sweep_random_kills:11 sweep_slurm:10 kubernetes_schema:10 row_ledger_kills:7 hub_push_peer:12)
# In `./run test thorough` alone, as in CI: repetition and combinations of what other entries show,
# the commands of all pages, and what concerns releases only.
set(thorough
  random_kills_many launch_random_kills_many resume_combinations sharing_combinations parity_families kernels_aten_long
  kernels_sim_long kernels_ptx_long kernels_ptxas_others sweep_ptxas_others installed_library
  installed_examples package wheel image random_kills docs guides kernels_sim slurm hosts_doctor lint)
# At most two minutes together: `./run test quick`.
set(quick
  adapters answers base checkpoint colors config data device evaluate failure_modes_page figures front generate http hub io jobs kernels
  launch_contract launch_hostile_use launch_restarts launch_timers layers library_pages models monitor monitor_pages nn nvidia
  optim page process profile rendezvous runs serving settings setup simulated_device sizing skips store_serve sweep telemetry text
  tour train)

function(schedule slots)
  foreach(entry ${ARGN})
    string(REPLACE ":" ";" parts ${entry})
    list(GET parts 0 name)
    list(GET parts 1 seconds)
    set_tests_properties(${name} PROPERTIES COST ${seconds} PROCESSORS ${slots})
  endforeach()
endfunction()
schedule(3 ${computing})
foreach(name ${quick})
  set_tests_properties(${name} PROPERTIES PROCESSORS 3)
endforeach()
schedule(1 ${waiting})
foreach(label thorough quick)
  foreach(name ${${label}})
    set_tests_properties(${name} PROPERTIES LABELS ${label})
  endforeach()
endforeach()
