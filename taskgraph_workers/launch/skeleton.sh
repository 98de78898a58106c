# shellcheck shell=bash
#: bare
# Options and traps that lines above have set, or BASH_ENV: from here on, bash is as it comes.
set +aefkmuCET +o pipefail +o posix
shopt -u nullglob failglob nocasematch extdebug
IFS=$' \t\n'
trap - ERR DEBUG RETURN
#: inside
    # This is the job itself: it starts Flux on every node, and this script once more inside of it.
    stop_file=$folder/workers-$(job_id).stop
    trap 'touch "$stop_file"' TERM INT HUP USR1 USR2
    @launcher@ \
        flux start bash "$0" inside "$(job_id)" "$(restarts)" "$SECONDS" "$folder" &
    flux=$!
    while :; do
        wait "$flux"
        code=$?
        kill -0 "$flux" 2>/dev/null || break # else only a trap has interrupted the waiting
    done
    rm -f "$stop_file"
    if [ "$code" = "$come_again" ]; then
        requeue_job
        code=$?
    fi
    exit "$code"
#: outside
# Inside of Flux the job is still that of the scheduler which started it.
job=$2 restarted=$3 SECONDS=$4 folder=$5
job_id() { echo "$job"; }
restarts() { echo "$restarted"; }
requeue_job() { exit "$come_again"; }
#: watch
job=$(job_id)
stop_file=$folder/workers-$job.stop
pids=() groups=() # what workers were started with, and the group of each
asking=()         # what end_workers has started that does not end by itself
status=0 asked='' ending='' again='' nap='' work='' next_look=0

say() { printf '%(%F %T)T workers: %s\n' -1 "$*"; }

# started GROUP: what start_group has added to pids is this group's.
started() {
    while [ "${#groups[@]}" -lt "${#pids[@]}" ]; do groups+=("$1"); done
}

is_running() {
    case " $(jobs -rp | tr '\n' ' ') " in *" $1 "*) ;; *) return 1 ;; esac
}

# Takes note of all that have ended; fails once there are none left.
collect() {
    local index running code
    running=" $(jobs -rp | tr '\n' ' ') "
    for index in "${!pids[@]}"; do
        case $running in *" ${pids[index]} "*) continue ;; esac
        wait "${pids[index]}"
        code=$?
        unset "pids[index]"
        # 143: a worker that knows nothing better to do when it is asked to end.
        if [ "$code" = 0 ] || { [ "$code" = 143 ] && [ -n "$ending" ]; }; then continue; fi
        say "a worker of ${groups[index]} ended with status $code"
        [ "$status" != 0 ] || status=$code
    done
    [ "${#pids[@]}" -gt 0 ]
}

# The command $until ends well once the work is done. If it fails, it is tried again after a minute.
work_is_done() {
    local code
    [ -n "$until" ] || return 1
    if [ -z "$work" ]; then
        [ "$SECONDS" -ge "$next_look" ] || return 1
        bash -c "$until" </dev/null &
        work=$!
        return 1
    fi
    ! is_running "$work" || return 1
    wait "$work"
    code=$?
    work=''
    [ "$code" != 0 ] || return 0
    say "what tells that the work is done failed with status $code; next try in 60 s"
    next_look=$((SECONDS + 60))
    return 1
}

end() {
    ending=$1
    say "they are asked to end once their tasks are done: $ending"
    # One more signal would end what asks them, before that has a trap of its own.
    trap '' "${signals[@]}"
    end_workers
    heed
}

time_is_up() {
    [ "$deadline" -gt 0 ] && [ "$SECONDS" -ge "$deadline" ]
}

# The job's time is up: its workers end, and the job goes back into the queue if it may.
end_for_time() {
    local count
    if [ "$requeues" -gt 0 ]; then
        count=$(restarts)
        if [ "${count:-0}" -lt "$requeues" ]; then
            again=yes
        else
            say "not requeued: it was $requeues times already"
        fi
    fi
    end "the time limit is $margin s ahead"
}

look() {
    if [ -n "$ending" ]; then
        return
    elif [ -n "$asked" ]; then
        end "got signal $asked"
    elif [ -e "$stop_file" ]; then
        end "there is a file $stop_file"
    elif time_is_up; then
        end_for_time
    elif work_is_done; then
        end "the work is done"
    fi
}

# Nothing is left running: only what this script has started is killed.
# shellcheck disable=SC2317 # the trap at EXIT calls it
finish() {
    trap '' "${signals[@]}"
    # shellcheck disable=SC2086 # what is empty is no word
    kill $nap $work "${asking[@]}" "${pids[@]}" 2>/dev/null
    rm -f "$stop_file"
}

# Whoever ends the job sends one of these. They interrupt waiting, and nothing else.
signals=(TERM INT HUP USR1 USR2 ALRM)
heed() {
    local signal
    for signal in "${signals[@]}"; do
        # shellcheck disable=SC2064 # now, since $signal changes
        trap "asked=$signal" "$signal"
    done
}
heed
trap finish EXIT
#: loop
say "${#pids[@]} processes started, job $job, on $HOSTNAME"
while collect; do
    look
    # Whoever is not done when the time is up has to begin anew, in the next run of this job.
    if [ -n "$again" ] && [ "$SECONDS" -ge "$last_call" ]; then break; fi
    sleep "$every" &
    nap=$!
    wait "$nap"
done
if [ "${#pids[@]}" = 0 ] && declare -F clear_nodes >/dev/null; then clear_nodes; fi
say "all ended, with status $status"
if [ -n "$again" ]; then
    say "the job goes back into the queue"
    requeue_job
    # shellcheck disable=SC2317 # inside of another scheduler it does not return
    status=$?
fi
exit "$status"
