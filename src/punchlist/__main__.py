from punchlist.app import main

main()
