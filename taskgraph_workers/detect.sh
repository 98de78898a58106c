# shellcheck shell=sh
#: say
tw_say() { printf 'taskgraph-workers: %s\n' "$1" >&2; }
tw_fail() { tw_say "$1"; exit 69; }
#: inherited
tw_inherited() { # NAME VALUE
  [ -n "$2" ] || tw_fail "$1 (detect: inherited): not set, or empty. Set it where the\
 worker is started, or give it a value in workers-config."
  tw_say "$1 is inherited from the worker"
}
#: gpus
tw_nl='
'
tw_flat() { # the start of TEXT, on one line
  IFS=" $tw_nl"
  # shellcheck disable=SC2086
  set -- $1
  printf %.300s "$*"
}

# Sets tw_gpus to lines "index uuid MiB" (MiB "mig": split up by MIG).
tw_list() {
  tw_out=$(nvidia-smi --query-gpu=index,uuid,memory.total \
    --format=csv,noheader,nounits </dev/null) ||
    tw_fail "$tw_names: nvidia-smi failed ($?): '$(tw_flat "$tw_out")'. Does the driver\
 work on this machine, and was its container given a GPU?"
  tw_L=$(nvidia-smi -L </dev/null 2>/dev/null) || tw_L=
  IFS=$tw_nl
  for tw_line in $tw_out; do
    IFS=$(printf ', \t\r')
    # shellcheck disable=SC2086
    set -- $tw_line
    case ${1-}${2-} in
      '') continue ;;
      [0-9][GM][PI][UG]-?* | [0-9][0-9][GM][PI][UG]-?*) ;;
      *) tw_fail "$tw_names: nvidia-smi printed '$(tw_flat "$tw_line")', not a GPU" ;;
    esac
    set -- "$1" "$2" "${3:--}"
    tw_below=${tw_L#*"UUID: $2)"}
    [ "$tw_below" = "$tw_L" ] || case $2${tw_below%%"$tw_nl"GPU *} in
      GPU-*"UUID: MIG-"*) set -- "$1" "$2" mig ;;
    esac
    [ "${tw_same:=$3}" = "$3" ] || tw_mixed=y
    tw_gpus=$tw_gpus$1\ $2\ $3$tw_nl
    tw_ids=$tw_ids${tw_ids:+,}$1
    tw_all=$((tw_all + 1))
  done
  tw_smi="shows $tw_all GPUs"
}

# Sets tw_gpu for one INDEX, or a UUID or the beginning of just one.
tw_find() {
  tw_gpu=
  IFS=$tw_nl
  for tw_line in $tw_gpus; do
    case $1 in
      "${tw_line%% *}") tw_gpu=$tw_line ;;
      GPU-?* | MIG-?*)
        case $tw_line in *" $1"*) tw_gpu=$tw_gpu${tw_gpu:+ and }$tw_line ;; esac ;;
    esac
  done
  case $tw_smi:$1:$tw_L in
    :[0-9]: | :[0-9][0-9]: | :GPU-?*:) tw_gpu="$1 -" ;;
    :MIG-?*: | *:MIG-?*:*"UUID: $1"*) tw_gpu=${tw_gpu:-$1 mig} ;;
  esac
  case $tw_gpu in '' | *' and '*) return 1 ;; esac
}

# Counts the GPUs of a comma-separated LIST as programs will. CUDA cuts it at the first entry
# that is no GPU, has none at all if one is named twice, and shows a process one MIG device.
tw_count() {
  tw_ids=
  IFS=,
  for tw_e in $1; do
    tw_e=${tw_e# } tw_e=${tw_e% }
    tw_find "$tw_e" || { tw_say "$tw_from='$1' ends at '$tw_e', which is no GPU here"; break; }
    case $tw_seen in
      *" ${tw_gpu% *} "*) tw_fail "$tw_names: $tw_from='$1' repeats $tw_e" ;;
    esac
    tw_seen="$tw_seen ${tw_gpu% *} "
    case $tw_n:$tw_gpu in 0:*) ;; *mig) break ;; esac
    case $tw_from:$tw_e in
      SLURM*) tw_ids=$tw_ids${tw_ids:+ }$tw_e ;;
      *) tw_ids=$tw_ids${tw_ids:+ }$tw_n ;;
    esac
    tw_mibs="$tw_mibs ${tw_gpu##* }"
    tw_n=$((tw_n + 1))
    case $tw_gpu in *mig) break ;; esac
  done
}

# CUDA_VISIBLE_DEVICES rules. Slurm's lists count the GPUs of the node: they matter where a
# task is shown more GPUs than its own.
tw_look() { # NAMES
  set -f
  tw_ifs=$IFS tw_names=$1 tw_from=nvidia-smi tw_n=0 tw_all=0 tw_seen=' '
  tw_smi='' tw_L='' tw_gpus='' tw_ids='' tw_mibs='' tw_same='' tw_mixed=''
  if command -v nvidia-smi >/dev/null 2>&1; then tw_list; fi
  IFS=,
  # shellcheck disable=SC2086
  if [ "${SLURM_STEP_GPUS-}" ]; then set -- SLURM_STEP_GPUS $SLURM_STEP_GPUS
  else set -- SLURM_JOB_GPUS ${SLURM_JOB_GPUS-}; fi
  if [ "${CUDA_VISIBLE_DEVICES+y}" ]; then
    tw_from=CUDA_VISIBLE_DEVICES tw_ids=$CUDA_VISIBLE_DEVICES
  elif [ $# -gt 1 ] && [ $# -le "$tw_all" ]; then
    tw_from=$1
    shift
    tw_ids=$*
  fi
  tw_asked=$tw_ids
  tw_count "$tw_asked"
  tw_what="$tw_n of $tw_all GPUs, from $tw_from"
  [ "$tw_smi" ] ||
    tw_what="$tw_n GPUs, ${CUDA_VISIBLE_DEVICES+from $tw_from, }without nvidia-smi"
}
tw_put() { # NAME VALUE WHY FOUND AT-LEAST UNIT
  [ "$4" -ge "$5" ] || tw_fail "$1: $4 $6 found, at least $5 wanted ($3). Looked at\
 CUDA_VISIBLE_DEVICES (${CUDA_VISIBLE_DEVICES-not set}), SLURM_STEP_GPUS\
 (${SLURM_STEP_GPUS-not set}), SLURM_JOB_GPUS (${SLURM_JOB_GPUS-not set}), nvidia-smi\
 (${tw_smi:-not in PATH}). Choose another pool, give this machine or container its GPUs,\
 or give $1 a value in workers-config."
  tw_say "$1='$2' ($3)"
  export "$1=$2"
}
#: memory
tw_memory() { # NAME NUMERATOR DENOMINATOR OF AT-LEAST
  [ "$tw_n" -gt 0 ] || tw_put "$1" '' "$tw_what" 0 1 GPUs
  tw_mib=''
  IFS=' '
  for tw_m in $tw_mibs; do
    case $tw_m in *[!0-9]*) tw_fail "$1: nvidia-smi doesn't tell the memory of a MIG\
 device, or of a GPU it can't see ($tw_what). Give $1 a value in workers-config." ;; esac
    case $4 in
      smallest) [ "${tw_mib:=$tw_m}" -le "$tw_m" ] || tw_mib=$tw_m ;;
      largest) [ "${tw_mib:=$tw_m}" -ge "$tw_m" ] || tw_mib=$tw_m ;;
      sum) tw_mib=$((${tw_mib:-0} + tw_m)) ;;
    esac
  done
  [ "$tw_n" = "$tw_all" ] || case $tw_mixed$tw_from=$tw_asked:${CUDA_DEVICE_ORDER-} in
    y*:PCI_BUS_ID) ;;
    yCUDA*=[0-9]*) tw_say "these GPUs differ, and CUDA may number them otherwise than\
 nvidia-smi: set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name UUIDs" ;;
  esac
  tw_value=$((tw_mib * $2 / $3))
  tw_put "$1" "$tw_value" "$2/$3 of $tw_mib MiB, the $4 of $tw_what" "$tw_value" "$5" MiB
}
#: end
IFS=$tw_ifs
set +f
