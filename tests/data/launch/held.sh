#!/bin/bash
# A task that ends once a file says so: its own, or one for all. What begins and ends is kept in a log.
# usage: held.sh FOLDER TASK
set -eu
folder=$1 task=$2
echo "$task begins" >>"$folder/log"
for ((i = 0; i < 3000; i++)); do
    if [ -e "$folder/$task.go" ] || [ -e "$folder/all.go" ]; then
        echo "$task ends" >>"$folder/log"
        exit 0
    fi
    sleep 0.1
done
exit 1
