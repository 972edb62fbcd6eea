from punchlist.wiring import main

main()
