<?php

// Orders whose keys are snowflake IDs, with Doctrine.

use Doctrine\ORM\EntityManagerInterface;
use Doctrine\ORM\Id\AbstractIdGenerator;
use Doctrine\ORM\Mapping as ORM;

// Doctrine cannot take a key from RETURNING, so it asks for one before the INSERT. With the strategy
// IDENTITY, or AUTO, its schema tool would put a sequence in place of the default.
class SnowflakeGenerator extends AbstractIdGenerator
{
    public function generateId(EntityManagerInterface $em, $entity): string
    {
        return (string) $em->getConnection()->fetchOne('SELECT snowflake_next()');
    }
}

#[ORM\Entity]
#[ORM\Table(name: 'orders')]
class Order
{
    // The default is for rows that others insert.
    #[ORM\Id]
    #[ORM\Column(type: 'bigint', options: ['default' => 'snowflake_next()'])]
    #[ORM\GeneratedValue(strategy: 'CUSTOM')]
    #[ORM\CustomIdGenerator(class: SnowflakeGenerator::class)]
    public string $id;

    #[ORM\Column(type: 'text')]
    public string $item;
}

// For the schema tool and migrations: without it, they drop the sequences of the extension's record.
// In Symfony: `doctrine.dbal.schema_filter: '~^(?!_snowflake\.)~'`.
function leave_out_the_record(Doctrine\DBAL\Configuration $configuration): void
{
    $configuration->setSchemaAssetsFilter(
        fn ($asset) => !str_starts_with(is_string($asset) ? $asset : $asset->getName(), '_snowflake.')
    );
}
