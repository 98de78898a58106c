#!/bin/bash
# A task that ends well once COUNT tasks which meet at one NAME run at the same time, and fails after two minutes.
# None leaves before all are there, so as many files as tasks mean that all were there at once.
# usage: meet.sh FOLDER TASK NAME COUNT
set -u
folder=$1 task=$2 name=$3 count=$4
echo "$SLURMD_NODENAME gpus=${CUDA_VISIBLE_DEVICES-}" >>"$folder/$task.ranks"
[ "$SLURM_PROCID" = 0 ] || exit 0
touch "$folder/$name-$task.here"
for ((i = 0; i < 1200; i++)); do
    here=("$folder/$name"-*.here)
    [ "${#here[@]}" -lt "$count" ] || exit 0
    sleep 0.1
done
echo "only ${#here[@]} of $count tasks were here" >&2
exit 1
