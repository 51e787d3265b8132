echo "1 failed in 0.$(date +%N)s"; exit 1
