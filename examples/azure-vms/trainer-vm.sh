#!/bin/sh
# What a virtual machine runs once, when it starts (cloud-init): one trainer, and then nothing more.
# The machine's image needs az, docker and NVIDIA's container toolkit in it. The machine's identity
# needs the role Tag Contributor on its resource group, and no other for what stands here.
set -u
variables=${VARIABLES-/run/trainer.env}
metadata=http://169.254.169.254/metadata/instance/compute

about() { curl -sf -H Metadata:true "$metadata/$1?api-version=2021-02-01&format=text"; }

# set_tags NAME=VALUE...: again and again, since nothing else tells how the training is.
set_tags() {
    until az tag update --resource-id "$(about resourceId)" --operation Merge --tags "$@" \
        --only-show-errors --output none; do
        sleep "${RETRY_S-10}"
    done
}

train() (
    # The trainer's variables and their names; exits with 69 where GPUs are wanted and none is found.
    about userData | base64 -d >"$variables" || exit 75
    # shellcheck source=/dev/null
    . "$variables"
    set --
    for name in $TASKGRAPH_WORKERS_ENV; do set -- "$@" --env "$name"; done
    exec timeout "$TASKGRAPH_WORKERS_MAX_RUN_TIME" docker run --gpus all "$@" "$TRAINING_IMAGE"
)

until az login --identity --output none; do sleep "${RETRY_S-10}"; done
set_tags phase=running
train
code=$?
if [ "$code" = 0 ]; then phase=succeeded; else phase=failed; fi
set_tags "exit_code=$code" "phase=$phase"
