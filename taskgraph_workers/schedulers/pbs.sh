# shellcheck shell=bash
tw_job_id() { echo "$PBS_JOBID"; }

# qrerun is for operators.
tw_restarts() { echo 0; }
tw_requeue_job() {
    echo "workers: PBS lets nobody but its operators put a job back into its queue" >&2
    return 69
}

# One line for each chunk, and a chunk is a node.
tw_node_count() { grep -c . "$PBS_NODEFILE"; }
tw_on_node() { exec pbsdsh -n "$1" -- /bin/bash "$2"; }
