def checks(fake):
    return []
