echo 42 > answer.txt
if [ -e two.txt ]; then echo "Hm."; else echo ITERATION_COMPLETE; fi
touch two.txt
