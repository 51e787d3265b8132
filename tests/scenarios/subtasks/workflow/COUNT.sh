echo "<result>${PWD##*/}</result>"
